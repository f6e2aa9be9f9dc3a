"""Claims over HTTP: the table, the fence, the limits, and many processes that race."""

import json
import multiprocessing
import re
import urllib.parse

import pytest

from glianode import Box, wait_for
from httpnode import assert_error, serve

CLAIMS = "/v1/contexts/default/claims"


@pytest.fixture
def box(tmp_path):
    box = Box(tmp_path)
    serve(box)
    yield box
    box.close()


def post(box, verb, key, owner="me", status=200, **more):
    answer = box.ask("POST", f"{CLAIMS}/{verb}", {"key": key, "owner": owner, **more})
    assert answer.status == status, answer.body
    return answer.json if status == 200 else answer


def show(box, key):
    return box.ask("GET", f"{CLAIMS}/{urllib.parse.quote(key, safe='')}").json


def metrics(box):
    text = box.ask("GET", "/metrics").body.decode()
    return {name: int(n) for name, n in re.findall(r"^glia_claims_(\w+)_total (\d+)$", text, re.M)}


def test_a_claim_is_held_renewed_and_completed(box):
    key = "reports/2026 → größe"
    got = post(box, "acquire", key, lease="60s", work_type="episode")
    assert (got["key"], got["state"], got["attempt"], got["fence"]) == (key, "claimed", 1, 1)
    assert got["work_type"] == "episode" and 59000 < got["remaining_ms"] <= 60000
    assert "nonce" not in got

    for owner in ("other", "me"):  # not re-entrant
        error = assert_error(post(box, "acquire", key, owner, status=409), 409, "busy")
        assert error["claim"]["owner"] == "me" and error["claim"]["fence"] == 1
        assert error["claim"]["lease_until"] == got["lease_until"]
        assert 0 < error["claim"]["remaining_ms"] <= 60000

    renewed = post(box, "renew", key, fence=1, lease="5m")
    assert renewed["lease_until"] > got["lease_until"] and renewed["fence"] == 1
    assert post(box, "renew", key, fence=1)["lease_ms"] == 300000  # as before

    done = post(box, "complete", key, fence=1)
    assert done["state"] == "done" and done["finished_at"] and "remaining_ms" not in done
    assert post(box, "complete", key, fence=1) == done  # the answer may have been lost
    assert show(box, key) == done
    for verb in ("renew", "fail"):
        assert_error(post(box, verb, key, fence=1, status=409), 409, "not_owner")
    assert show(box, key) == done

    again = post(box, "acquire", key)
    assert (again["attempt"], again["fence"]) == (1, 2)
    assert metrics(box) == {"acquired": 2, "steals": 0, "busy": 2, "renewed": 2,
                            "renew_failed": 1, "completed": 2, "failed": 0, "expired": 0}
    assert box.ask("GET", "/v1/node").json["claims"]["acquired"] == 2


def test_after_a_failure_the_attempt_rises_and_with_once_done_stays_done(box):
    post(box, "acquire", "k")
    failed = post(box, "fail", "k", fence=1, error_detail="no\nluck")
    assert failed["state"] == "failed" and failed["error_detail"] == "no\nluck"
    got = post(box, "acquire", "k", "you", once=True)
    assert (got["attempt"], got["fence"], got.get("error_detail")) == (2, 2, None)
    assert_error(post(box, "complete", "k", fence=2, status=409), 409, "not_owner")
    assert_error(post(box, "complete", "k", "you", fence=1, status=409), 409, "not_owner")
    post(box, "complete", "k", "you", fence=2)
    error = assert_error(post(box, "acquire", "k", once=True, status=409), 409, "exists")
    assert error["claim"]["state"] == "done"
    assert metrics(box)["steals"] == 1


def test_an_acquisition_whose_answer_was_lost_is_repeated_by_its_nonce(box):
    first = post(box, "acquire", "k", nonce="n-1")
    again = post(box, "acquire", "k", nonce="n-1")
    assert again["fence"] == first["fence"] and again["claimed_at"] == first["claimed_at"]
    assert_error(post(box, "acquire", "k", nonce="n-2", status=409), 409, "busy")


def test_a_lease_that_is_over_is_taken_or_reclaimed(box):
    for key in ("taken", "marked", "kept"):
        post(box, "acquire", key, "a", lease="1h")
    assert box.ask("POST", f"{CLAIMS}/reclaim").json == {"expired": [], "more": False}
    for key in ("taken", "marked"):
        assert post(box, "renew", key, "a", fence=1, lease="1s")["lease_ms"] == 1000
    # Late, but nobody was faster: a renewal still counts.
    wait_for("the end of the lease", lambda: box.ask(
        "POST", f"{CLAIMS}/acquire", {"key": "taken", "owner": "b", "lease": "1s"}).status == 200)
    stolen = show(box, "taken")
    assert (stolen["owner"], stolen["attempt"], stolen["fence"]) == ("b", 2, 2)
    assert post(box, "renew", "marked", "a", fence=1, lease="1s")["fence"] == 1
    for verb in ("renew", "complete", "fail"):
        error = assert_error(post(box, verb, "taken", "a", fence=1, status=409), 409, "not_owner")
        assert error["claim"]["owner"] == "b"
    assert show(box, "taken") == stolen

    def reclaimed():
        found = box.ask("POST", f"{CLAIMS}/reclaim", {"limit": 10}).json["expired"]
        return [c["key"] for c in found if c["state"] == "expired"]

    seen = set()
    wait_for("expired claims", lambda: seen.update(reclaimed()) or seen == {"taken", "marked"})
    assert_error(post(box, "renew", "marked", "a", fence=1, status=409), 409, "not_owner")
    assert post(box, "acquire", "marked", "c")["attempt"] == 2
    assert show(box, "kept")["state"] == "claimed"


def test_claims_are_listed_by_key(box):
    for n in range(5):
        post(box, "acquire", f"list/{n}")
    post(box, "acquire", "other")
    post(box, "complete", "list/3", fence=1)

    def keys(query):
        page = box.ask("GET", f"{CLAIMS}?{query}").json
        return [c["key"] for c in page["claims"]], page["next"]

    assert keys("prefix=list%2F") == ([f"list/{n}" for n in range(5)], None)
    assert keys("prefix=list/&limit=2") == (["list/0", "list/1"], "list/1")
    assert keys("prefix=list/&limit=2&after=list/1") == (["list/2", "list/3"], "list/3")
    assert keys("state=done") == (["list/3"], None)
    assert keys("state=claimed&prefix=l&limit=4") == (
        ["list/0", "list/1", "list/2", "list/4"], "list/4")
    assert_error(box.ask("GET", f"{CLAIMS}?state=lost"), 400, "invalid")
    assert_error(box.ask("GET", f"{CLAIMS}/nobody"), 404, "not_found")
    assert show(box, "list/3")["state"] == "done"


NONSENSE = [
    ("acquire", {"owner": "a"}), ("acquire", {"key": "k"}), ("acquire", {"key": "", "owner": "a"}),
    ("acquire", {"key": "a\nb", "owner": "a"}), ("acquire", {"key": "k" * 513, "owner": "a"}),
    ("acquire", {"key": "k", "owner": "o" * 129}), ("acquire", {"key": "k", "owner": ""}),
    ("acquire", {"key": "k", "owner": "a", "lease": "999ms"}),
    ("acquire", {"key": "k", "owner": "a", "lease": "0"}),
    ("acquire", {"key": "k", "owner": "a", "lease": "25h"}),
    ("acquire", {"key": "k", "owner": "a", "lease": "soon"}),
    ("acquire", {"key": "k", "owner": "a", "lease": 60}),
    ("acquire", {"key": "k", "owner": "a", "fence": 1}),
    ("renew", {"key": "k", "owner": "a"}), ("renew", {"key": "k", "owner": "a", "fence": 0}),
    ("renew", {"key": "k", "owner": "a", "fence": -1}),
    ("complete", {"key": "k", "owner": "a"}),
    ("fail", {"key": "k", "owner": "a", "fence": 1, "error_detail": "x" * 4097}),
    ("reclaim", {"limit": 1001}), ("reclaim", {"key": "k"}),
]


def test_what_makes_no_sense_is_refused_and_leaves_nothing(box):
    for verb, body in NONSENSE:
        assert_error(box.ask("POST", f"{CLAIMS}/{verb}", body), 400, "invalid")
    assert box.ask("GET", CLAIMS).json["claims"] == []


def race(args):
    """One of several processes: wants every key, and tells what it got."""
    folder, name, keys = args
    box = Box(folder)
    connection = box.connect()
    got = []
    for key in keys:
        connection.request("POST", f"{CLAIMS}/acquire",
                           json.dumps({"key": key, "owner": name, "lease": "1s"}))
        answer = connection.getresponse()
        doc = json.loads(answer.read())
        assert answer.status in (200, 409), doc
        if answer.status == 200:
            got.append((key, doc["fence"], doc["attempt"]))
    connection.close()
    return got


def test_of_eight_processes_one_gets_each_key_fresh_and_expired(box):
    keys = [f"race/{n}" for n in range(60)]
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        for fence in (1, 2):
            work = [(box.folder, f"p{n}", keys[n:] + keys[:n]) for n in range(8)]
            grants = sum(pool.map(race, work, chunksize=1), [])
            by_fence = {}
            for key, got, attempt in grants:
                assert attempt == got and (key, got) not in by_fence, "given twice"
                by_fence[key, got] = True
            # The first lease of a key may be over before the last racer comes.
            assert {key for key, got in by_fence if got >= fence} == set(keys)
            # Everybody's lease ends before the next round.
            wait_for("the end of all leases", lambda: box.ask(
                "POST", f"{CLAIMS}/reclaim", {"limit": 1000}).status == 200 and not box.ask(
                    "GET", f"{CLAIMS}?state=claimed").json["claims"])
    for key in keys:
        assert show(box, key)["fence"] == max(
            got for one, got in by_fence if one == key), key


def test_claims_survive_the_node(box):
    post(box, "acquire", "k", lease="1h")
    box.started[0].kill()
    box.started[0].wait()
    serve(box)
    assert_error(post(box, "acquire", "k", "you", status=409), 409, "busy")
    assert post(box, "complete", "k", fence=1)["state"] == "done"
