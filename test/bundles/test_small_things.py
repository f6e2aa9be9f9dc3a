"""What bundles and those who look at them meet at the edges."""

import os

from bundlework import Bundle, item, validate


@item("B-7.1-4")
def test_an_empty_folder_of_the_payloads_is_fine(alone, tmp_path):
    look = "note('seen', sorted(os.listdir('.')))"
    bundle = Bundle("empty").worker("a", look, output_message_type="done", upload_paths=[
        {"source": "a.py", "target": "a.py"}, {"source": "data", "target": "data"},
        {"source": "deep/er", "target": "er"}])
    folder = bundle.ends("a").seed("a", {}).write(tmp_path / "bundle")
    os.makedirs(os.path.join(folder, "payloads", "data"))
    os.makedirs(os.path.join(folder, "payloads", "deep", "er", "est"))
    assert validate(alone.box, folder) == (True, [])
    ran = alone.run(folder)
    seen, = ran.lines("seen")
    assert "a.py" in seen and "er" not in seen, seen

    none = Bundle("none").worker("a", upload_path="dat").ends("a").seed("a", {})
    error, = alone.box.json("validate", none.write(tmp_path / "none"), code=2)["errors"]
    assert error["reason"] == "no_such_file" and "`dat`" in error["message"], error


def test_a_bundle_with_nothing_in_its_payloads_runs(alone, tmp_path):
    bundle = Bundle("bare").agent("a", "executor", command=["true"], upload_path=".",
                                  runner_module="HostLocal", output_message_type="done")
    bundle.step("a").ends("a").seed("a", {})
    alone.run(bundle.write(tmp_path / "bundle"))


def test_nothing_waits_when_the_job_has_ended(alone, tmp_path):
    bundle = Bundle("over").worker("a", "say(x=1)", output_message_type="done")
    bundle.agent("keeps", "aggregator", complete_after=9, output_message_type="more")
    bundle.edge("a", "keeps", "done").ends("a").seed("a", {})
    ran = alone.run(bundle.write(tmp_path / "bundle"))
    assert ran.of("aggregator_received", agent_id="keeps"), ran
    assert alone.box.json("job", "messages", ran.run_id)["messages"] == []
    agents = alone.box.json("job", "agents", ran.run_id)["agents"]
    assert [a["waiting"] for a in agents if "waiting" in a] == [0] * len(agents), agents
