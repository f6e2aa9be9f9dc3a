"""Claims in Python: the client and its fake follow one table; and what a holder is told when."""

import multiprocessing
import os
import signal
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import ROOT, Box, wait_for  # noqa: E402
from httpnode import serve  # noqa: E402
from stalls import Stalls  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "sdk", "python"))
import glia  # noqa: E402
from glia.testing import FakeClaims  # noqa: E402


@pytest.fixture(name="box")
def make_box(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GLIA_")]:
        monkeypatch.delenv(name)
    box = Box(tmp_path)
    serve(box)
    yield box
    box.close()


@pytest.fixture(name="claims", params=["node", "fake"])
def make_claims(request):
    if request.param == "fake":
        return FakeClaims(owner="me", lease=60)
    box = request.getfixturevalue("box")
    return glia.Claims(glia.Client(data_dir=box.data), owner="me", lease=60)


def let_expire(claims, claim):
    """The lease of this claim is over: until here it was long, for machines that stand still."""
    until = claims.renew(claim, lease=1).lease_until.timestamp()
    if isinstance(claims, FakeClaims):
        claims.advance(1)
    else:
        wait_for("the end of the lease", lambda: until + 0.05 < time.time())


# ---- the table ----


def test_acquire_follows_the_table(claims):
    first = claims.acquire("k", work_type="x")
    assert (first.state, first.attempt, first.fence, first.work_type) == ("claimed", 1, 1, "x")
    assert 0 < first.remaining <= 60 and first.lease == 60
    for owner in ("me", "you"):
        with pytest.raises(glia.ClaimBusyError) as busy:
            claims.acquire("k", owner=owner)
        assert busy.value.owner == "me" and 0 < busy.value.remaining <= 60
        assert busy.value.code == "busy" and isinstance(busy.value, glia.ConflictError)
    let_expire(claims, first)
    second = claims.acquire("k", owner="you", lease=60)
    assert (second.owner, second.attempt, second.fence) == ("you", 2, 2)
    assert claims.fail(second, "no luck").error_detail == "no luck"
    third = claims.acquire("k", lease=60)
    assert (third.attempt, third.fence, third.error_detail) == (3, 3, None)
    assert claims.complete(third).state == "done"
    fourth = claims.acquire("k", lease=60)
    assert (fourth.attempt, fourth.fence) == (1, 4)
    claims.complete(fourth)
    with pytest.raises(glia.ClaimDoneError):
        claims.acquire("k", once=True)


def test_only_owner_and_fence_together_change_it(claims):
    first = claims.acquire("k")
    let_expire(claims, first)
    late = claims.renew(first, lease=60)  # nobody was faster
    assert late.fence == 1 and late.remaining > 0
    let_expire(claims, first)
    second = claims.acquire("k", lease=60)
    before = claims.get("k")
    for change in (claims.renew, claims.complete, claims.fail):
        with pytest.raises(glia.ClaimLostError) as lost:
            change(first)
        assert lost.value.code == "not_owner" and lost.value.claim["fence"] == 2
    assert claims.get("k") == before
    done = claims.complete(second)
    assert claims.complete(second) == done  # its answer may have been lost
    for change in (claims.renew, claims.fail):
        with pytest.raises(glia.ClaimLostError):
            change(second)
    with pytest.raises(glia.ClaimLostError):
        claims.renew(glia.Claim(**{**vars(second), "key": "never"}))


def test_reclaim_marks_what_is_over(claims):
    over = claims.acquire("over")
    claims.acquire("held", lease=60)
    assert claims.reclaim() == []
    let_expire(claims, over)
    [marked] = claims.reclaim()
    assert (marked.key, marked.state, marked.fence) == ("over", "expired", 1)
    assert claims.reclaim() == []
    with pytest.raises(glia.ClaimLostError):
        claims.renew(over)
    assert claims.acquire("over").attempt == 2
    assert [one.key for one in claims.list(state="claimed")] == ["held", "over"]
    assert [one.key for one in claims.list(prefix="ov")] == ["over"]


def test_what_makes_no_sense_is_refused(claims):
    fine = claims.acquire("k/ä →")
    assert claims.get("k/ä →").fence == fine.fence
    for wrong in (dict(key=""), dict(key="a\nb"), dict(key="k" * 513), dict(owner="o" * 129),
                  dict(lease=0.5), dict(lease=90000), dict(work_type="w" * 129)):
        with pytest.raises(glia.InvalidError):
            claims.acquire(**{"key": "k", **wrong})
    with pytest.raises(glia.NotFoundError):
        claims.get("nobody")
    assert claims.fail(fine, "x" * 5000 + "\0").error_detail == "x" * 4096


def test_a_block_completes_fails_or_is_told_that_it_lost(claims):
    with claims.hold("k", lease=60) as held:
        assert held.is_valid and held.fence == 1
        held.check()
    assert claims.get("k").state == "done"
    with pytest.raises(ZeroDivisionError):
        with claims.hold("k", lease=60):
            1 / 0  # noqa: B018
    assert claims.get("k").error_detail.startswith("ZeroDivisionError: ")
    with claims.hold("k", lease=60) as held:
        held.fail("early")
        assert not held.is_valid
    assert claims.get("k").error_detail == "early"

    lost = []
    with pytest.raises(glia.ClaimLostError):
        with claims.hold("k", lease=60, on_lost=lost.append) as held:
            claims.fail(held.claim)  # as if by somebody else
            with pytest.raises(glia.ClaimLostError):
                held.check()
            assert held.lost.is_set() and not held.is_valid
    assert lost == [held] and claims.get("k").state == "failed"


def test_a_claim_is_renewed_while_it_is_held(claims):
    with claims.hold("k", lease=6) as held:
        until = held.claim.lease_until.timestamp()
        if isinstance(claims, FakeClaims):
            claims.advance(10)
        else:
            wait_for("renewals beyond the lease", lambda: claims.get("k").raw["last_heartbeat_at"]
                     > held.claim.raw["claimed_at"] and held.claim.lease_until.timestamp()
                     > until + 0.5)
        assert held.is_valid
        with pytest.raises(glia.ClaimBusyError):
            claims.acquire("k", owner="you")
    assert claims.get("k").state == "done" and claims.get("k").fence == 1


def test_who_waits_gets_it_when_the_lease_is_over(claims):
    gone = claims.acquire("k", owner="gone")
    with pytest.raises(glia.ClaimBusyError):
        claims.hold("k")
    claims.renew(gone, lease=1)
    with claims.hold("k", wait=30) as held:
        assert held.attempt == 2
    claims.acquire("k")
    with pytest.raises(glia.ClaimBusyError):
        claims.hold("k", wait=0.2)


# ---- only the fake ----


def test_the_fake_can_be_away_and_its_claims_can_be_taken():
    fake = FakeClaims(lease=10)
    with pytest.raises(glia.ClaimLostError):
        with fake.hold("k") as held:
            fake.away = True
            fake.advance(7)
            assert held.is_valid
            fake.advance(5)
            assert not held.is_valid and held.lost.is_set()
            fake.away = False
    assert fake.get("k").state == "claimed"
    fake.advance(10)
    with fake.hold("k") as held:
        fake.away = True
        fake.advance(7)
        fake.away = False
        fake.advance(100)
        assert held.is_valid


# ---- only the node ----


def test_a_node_that_stands_still_costs_the_claim_in_time(box):
    claims = glia.Claims(glia.Client(data_dir=box.data), lease=4)
    lost, times = threading.Event(), []

    def on_lost(_):
        times.append(claims.now())
        lost.set()

    with Stalls() as stalls, pytest.raises(glia.ClaimLostError):
        with claims.hold("k", on_lost=on_lost) as held:
            os.kill(box.started[0].pid, signal.SIGSTOP)
            try:
                began = claims.now()
                assert lost.wait(60) and not held.is_valid
                assert times[0] - began < 4 + stalls.slack(), "later than the lease"
            finally:
                os.kill(box.started[0].pid, signal.SIGCONT)
    assert claims.get("k").state == "claimed"


def race(args):
    """One of several processes: its wins."""
    data, name, keys = args
    claims = glia.Claims(glia.Client(data_dir=data), owner=name, lease=60)
    won = []
    for key in keys:
        try:
            won.append((key, claims.acquire(key).fence))
        except glia.ClaimBusyError:
            pass
    return won


def test_of_eight_processes_one_gets_each_key(box):
    keys = [f"race/{n}" for n in range(40)]
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        won = sum(pool.map(race, [(box.data, f"p{n}", keys) for n in range(8)], chunksize=1), [])
    assert sorted(won) == sorted((key, 1) for key in keys)


@pytest.mark.slow
def test_a_hundred_orphans_are_done_once_each(box):
    """Claims on, and the holder of all of them is dead: nobody gets busy with itself."""
    claims = glia.Claims(glia.Client(data_dir=box.data), owner="dead", lease=1)
    for n in range(100):
        last = claims.acquire(f"orphan/{n}")
    let_expire(claims, last)
    done, lock = [], threading.Lock()

    def work(name):
        mine = glia.Claims(glia.Client(data_dir=box.data), owner=name, lease=60)
        for one in mine.list(prefix="orphan/"):
            try:
                with mine.hold(one.key, once=True) as held:
                    with lock:
                        done.append((one.key, held.attempt))
            except (glia.ClaimBusyError, glia.ClaimDoneError):
                pass

    threads = [threading.Thread(target=work, args=(f"node-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == sorted((f"orphan/{n}", 2) for n in range(100))
    assert all(one.state == "done" for one in claims.list())
