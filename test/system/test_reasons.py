"""Errors have stable words, wherever a program meets them: in the API, with --json, in `why`."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import httpnode  # noqa: E402
from glianode import ROOT, wait_for  # noqa: E402

JOBS = "/v1/contexts/default/jobs"


def words(kind):
    with open(os.path.join(ROOT, "src/base/reasons.def"), encoding="utf-8") as file:
        return re.findall(rf'^{kind}\(\w+,(?: \w+,)? "(\w+)"', file.read(), re.M)


def test_a_word_is_there_once():
    for kind in ("REASON", "WHY_CODE"):
        found = words(kind)
        assert len(found) > 50 and len(set(found)) == len(found)
        assert all(re.fullmatch(r"[a-z][a-z0-9_]*", word) for word in found)


def test_the_api_document_lists_all_words(box):
    httpnode.serve(box)
    schemas = box.ask("GET", "/v1/openapi.json").json["components"]["schemas"]
    assert schemas["Reason"]["x-extensible-enum"] == words("REASON")
    assert schemas["WhyCode"]["x-extensible-enum"] == words("WHY_CODE")
    error = schemas["Error"]["properties"]["error"]["properties"]
    assert error["reason"] == {"$ref": "#/components/schemas/Reason"}


def test_the_same_error_has_the_same_reason_with_and_without_a_node(box):
    job = box.json("run", "--", "true")["job_id"]
    for _ in range(2):
        assert box.reason("job", "status", "none", code=3) == "no_such_job"
        assert box.reason("why", job, "none", code=3) == "no_such_step"
        assert box.reason("job", "logs", job, "none", code=3) == "no_such_step"
        assert box.reason("job", "list", "--status", "odd", code=2) == "no_such_status"
        assert box.reason("job", "list", "--odd", code=2) == "usage"
        if not os.path.exists(box.socket):
            httpnode.serve(box)
    answer = box.ask("GET", f"{JOBS}/none")
    assert httpnode.assert_error(answer, 404, "not_found")["reason"] == "no_such_job"
    answer = box.ask("GET", "/v1/none")
    assert httpnode.assert_error(answer, 404, "not_found")["reason"] == "no_such_path"
    answer = box.ask("DELETE", JOBS)
    assert httpnode.assert_error(answer, 405, "invalid")["reason"] == "method_not_allowed"


def test_every_complaint_about_a_flow_has_a_path_and_a_reason(box):
    httpnode.serve(box)
    flow = {"steps": {"a": {"run": "x"}, "b": {"sh": "x", "needs": ["c", "b"]}}}
    error = httpnode.assert_error(box.ask("POST", JOBS, {"flow": flow}), 400, "invalid")
    assert error["reason"] == "flow_invalid"
    assert {(d["path"], d["reason"]) for d in error["details"]} == {
        ("steps.a.run", "list_not_text"),
        ("steps.b.needs", "unknown_step"), ("steps.b.needs", "self_dependency")}
    box.write("f.yaml", "steps: {a: {sh: x, need: b}}")
    found = box.json("validate", "f.yaml", code=2)["errors"]
    assert [(e["path"], e["reason"]) for e in found] == [("steps.a.need", "unknown_field")]
    box.write("g.yaml", "steps: [")
    assert box.json("validate", "g.yaml", code=2)["errors"][0]["reason"] == "syntax_invalid"


def test_why_has_a_code(box):
    httpnode.serve(box)
    job = httpnode.submit(box, {"steps": {
        "a": {"signal": "go"}, "b": {"sh": "true", "needs": "a"}, "c": {"sleep": "1h"},
        "d": {"sh": "sleep 600"}}})
    wait_for("a running step", lambda: box.why_code(job) == "running")
    assert [box.why_code(job, step) for step in "abcd"] == [
        "waits_for_signal", "waits_for_steps", "sleeping", "running"]
    status = box.ask("GET", f"{JOBS}/{job}").json
    assert status["why_code"] == "running"
    assert status["workflow_state"]["steps"]["b"]["why_code"] == "waits_for_steps"
    why = box.ask("GET", f"{JOBS}/{job}/why?step=c").json
    assert why["why_code"] == "running" and why["steps"][0]["why_code"] == "sleeping"
    box.glia("job", "cancel", job)
    wait_for("the end", lambda: box.why_code(job) == "cancelled")
    assert box.reason("job", "pause", job, code=2) == "job_ended"
