"""The Python client and nodes that die, hang, cut connections, or are none."""

import json
import os
import random
import signal
import socket
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import AT_ONCE_S, ROOT, Box, wait_for  # noqa: E402
from httpnode import serve  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "sdk", "python"))
import glia  # noqa: E402

NOOP = {"steps": {"a": {"noop": True}}}


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path)
    serve(box)
    yield box
    box.close()


# Patience of clients whose node is started again: a busy machine takes seconds for that.
RESTART_S = 60


def hold(box, name="go"):
    return f"until [ -e {box.folder}/{name} ]; do sleep 0.02; done"


class Doing(threading.Thread):
    """Something that is done meanwhile; `get` gives its result, or raises its error."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.result, self.error = work, None, None
        self.start()

    def run(self):
        try:
            self.result = self.work()
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error

    def get(self, seconds=60):
        self.join(seconds)
        assert not self.is_alive(), "it does not end"
        if self.error is not None:
            raise self.error
        return self.result


# ---- a node that is killed, and its successor ----


def test_waiting_and_watching_go_on_with_the_next_node(box):
    client = glia.Client(data_dir=box.data, patience=RESTART_S)
    job = client.submit({"steps": {
        "a": {"sh": f"echo a1; {hold(box, 'go0')}; echo a2; {hold(box, 'go1')}; echo a3"},
        "b": {"needs": "a", "sh": f"echo b; {hold(box, 'go2')}"}}})
    seen = []
    waiting = Doing(lambda: client.wait(job, timeout=300))
    watching = Doing(lambda: seen.extend(client.watch(job)))
    reading = Doing(lambda: [line.text for line in client.logs(job, "a", follow=True)])
    for number in range(3):
        time.sleep(0.3)
        box.started[-1].kill()
        box.started[-1].wait()
        time.sleep(0.2)
        assert waiting.is_alive() and watching.is_alive()
        serve(box)
        box.write(f"go{number}", "")
    assert waiting.get().completed
    watching.get()
    assert reading.get() == ["a1", "a2", "a3"]
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert seen == list(client.events(job)) and seen[-1].type == "job_completed"


def test_submissions_with_run_ids_survive_any_number_of_nodes(box):
    client = glia.Client(data_dir=box.data, patience=RESTART_S)
    client.node()
    stop = threading.Event()

    def submit(word):
        answers = {}
        while not stop.is_set():
            one = client.submit(NOOP, run_id=f"{word}-{len(answers)}")
            answers[one.run_id] = one.job_id
        return answers

    def submit_many(word):
        answers = {}
        while not stop.is_set():
            for one in client.submit_many(
                    [glia.Submission(run_id=f"{word}-{len(answers) + n}") for n in range(50)],
                    flow=NOOP):
                assert isinstance(one, glia.Submitted), one
                answers[one.run_id] = one.job_id
        return answers

    doing = [Doing(lambda: submit("x")), Doing(lambda: submit_many("y"))]
    for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        time.sleep(0.4)
        box.started[-1].send_signal(how)
        box.started[-1].wait(60)
        serve(box)
    time.sleep(0.2)
    stop.set()
    answers = {}
    for one in doing:
        answers.update(one.get())
    found = {job.run_id: job.job_id for job in client.jobs()}
    assert len(found) == len(list(client.jobs()))
    assert {run: found.get(run) for run in answers} == answers
    assert len(answers) > 50


def test_what_never_left_is_sent_when_the_node_is_back(box):
    client = glia.Client(data_dir=box.data, patience=RESTART_S)
    client.submit(NOOP, run_id="before")
    box.started[-1].kill()
    box.started[-1].wait()
    late = Doing(lambda: client.submit(NOOP))  # no run id: it is sent once, or never
    time.sleep(0.3)
    assert late.is_alive()
    serve(box)
    job = late.get()
    assert {one.job_id for one in client.jobs() if one.run_id != "before"} == {job.job_id}


def test_a_node_that_was_there_for_long_has_all_the_patience(box):
    client = glia.Client(data_dir=box.data, patience=20)
    job = client.submit({"steps": {"a": {"sh": f"echo x; {hold(box)}; echo y"}}})
    waiting = Doing(lambda: client.wait(job, timeout=120))
    watching = Doing(lambda: [event.seq for event in client.watch(job)])
    reading = Doing(lambda: [line.text for line in client.logs(job, "a", follow=True)])
    time.sleep(21)  # nothing happens, for longer than that
    box.started[-1].kill()
    box.started[-1].wait()
    time.sleep(0.3)
    serve(box)
    box.write("go", "")
    assert waiting.get().completed
    assert watching.get() == [1, 2, 3, 4]
    assert reading.get() == ["x", "y"]


def test_patience_has_an_end(box):
    client = glia.Client(data_dir=box.data, patience=0.5)
    job = client.submit({"steps": {"a": {"sleep": "1h"}}})
    watching = Doing(lambda: list(client.watch(job)))
    waiting = Doing(lambda: client.wait(job))
    reading = Doing(lambda: list(client.logs(job, "a", follow=True)))
    time.sleep(0.2)
    box.started[-1].kill()
    box.started[-1].wait()
    begin = time.monotonic()
    for one in (watching, waiting, reading):
        with pytest.raises(glia.UnavailableError):
            one.get()
    with pytest.raises(glia.UnavailableError) as caught:
        client.status(job)
    assert "glia serve" in str(caught.value)
    assert time.monotonic() - begin < AT_ONCE_S
    assert not client.is_ready()


def stop(process):
    """Until all of its threads stand still: one that is at work may answer once more."""
    process.send_signal(signal.SIGSTOP)

    def stands_still():
        found = []
        for task in os.listdir(f"/proc/{process.pid}/task"):
            with open(f"/proc/{process.pid}/task/{task}/stat", encoding="ascii") as file:
                found.append(file.read().rpartition(")")[2].split()[0])
        return set(found) == {"T"}
    wait_for("the node to stand still", stands_still)


@pytest.mark.slow
def test_a_wait_ends_in_time_whether_or_not_there_is_a_node(box):
    client = glia.Client(data_dir=box.data)
    job = client.submit({"steps": {"a": {"sh": "echo x; sleep 600"}}})

    def all_end_in_time():
        for wait in (lambda: client.wait(job, timeout=0.4),
                     lambda: list(client.watch(job, timeout=0.4)),
                     lambda: list(client.logs(job, "a", follow=True, timeout=0.4))):
            begin = time.monotonic()
            with pytest.raises(glia.WaitTimeout) as caught:
                wait()
            assert isinstance(caught.value, TimeoutError)
            assert 0.3 < time.monotonic() - begin < AT_ONCE_S

    all_end_in_time()
    stop(box.started[-1])
    all_end_in_time()
    box.started[-1].send_signal(signal.SIGCONT)
    box.started[-1].kill()
    box.started[-1].wait()
    all_end_in_time()


def test_a_node_that_hangs_is_a_timeout_that_says_what_is_known(box):
    client = glia.Client(data_dir=box.data, timeout=0.5)
    wait_for("a connection", client.is_ready)
    stop(box.started[-1])
    try:
        for ask, code in ((client.node, "unavailable"), (lambda: client.submit(NOOP), "unknown"),
                          (lambda: client.submit(NOOP, run_id="r"), "unavailable"),
                          (lambda: client.cancel("r"), "unknown")):
            begin = time.monotonic()
            with pytest.raises(glia.RequestTimeout) as caught:
                ask()
            assert caught.value.code == code
            assert isinstance(caught.value, TimeoutError)
            assert time.monotonic() - begin < AT_ONCE_S
    finally:
        box.started[-1].send_signal(signal.SIGCONT)
    wait_for("the node", client.is_ready)


# ---- connections that are cut ----


class Cutter:
    """Stands between client and node. Cuts every stream, and half of the other connections, after
    some bytes of the answer."""

    def __init__(self, folder, target, seed):
        self.path, self.target = os.path.join(folder, "cut.sock"), target
        self.chance = random.Random(seed)
        self.cuts = 0
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.server.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.join, args=(near, self.chance.randrange(1, 1500),
                                                     self.chance.random() < 0.5),
                             daemon=True).start()

    def join(self, near, limit, is_lucky):
        request = near.recv(65536)
        is_stream = b"event-stream" in request or b"follow=true" in request
        far = socket.socket(socket.AF_UNIX)
        far.connect(self.target)
        far.sendall(request)
        threading.Thread(target=self.pump, args=(near, far, None), daemon=True).start()
        self.pump(far, near, limit if is_stream or not is_lucky else None)

    def pump(self, source, sink, left):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if left is not None and len(data) >= left:
                    sink.sendall(data[:left])
                    self.cuts += 1
                    break
                left = None if left is None else left - len(data)
                sink.sendall(data)
        except OSError:
            pass
        for sock in (source, sink):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.server.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cut_connections_lose_nothing_and_repeat_nothing(box, seed):
    cutter = Cutter(box.folder, box.socket, seed)
    client = glia.Client(f"unix:{cutter.path}")
    steps = {f"s{n}": {"noop": True, **({"needs": f"s{n - 1}"} if n else {})} for n in range(100)}
    steps["a"] = {"sh": "for i in $(seq 400); do echo line $i of a log; done; sleep 0.5; "
                        "for i in $(seq 401 600); do echo line $i of a log; sleep 0.002; done"}
    job = client.submit({"steps": steps}, run_id="cut")
    reading = Doing(lambda: [x.text for x in client.logs("cut", "a", follow=True)])
    seen = list(client.watch("cut"))
    assert reading.get() == [f"line {n} of a log" for n in range(1, 601)]
    assert client.wait(job).completed
    direct = glia.Client(data_dir=box.data)
    assert seen == list(direct.events(job))
    assert len(list(direct.jobs())) == 1
    assert cutter.cuts > 20  # 200 events do not fit into fewer
    cutter.close()


# ---- something else that answers ----


class Fake:
    """A server on TCP: each connection gets the next of some answers, the last again and again."""

    def __init__(self, *answers, drip=None):
        self.answers, self.requests, self.drip = list(answers), [], drip
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        self.kept = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock = self.server.accept()[0]
            except OSError:
                return
            answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
            request = b""
            while b"\r\n\r\n" not in request:
                request += sock.recv(65536)
            self.requests.append(request)
            self.kept.append(sock)
            if answer is None:  # never
                continue
            try:
                sock.sendall(answer)
                if self.drip is None:
                    sock.shutdown(socket.SHUT_WR)
                while self.drip:
                    sock.sendall(self.drip)
                    time.sleep(0.1)
            except OSError:
                pass

    def close(self):
        self.server.close()
        for sock in self.kept:
            sock.close()


def reply(body, status="200 OK", **headers):
    head = {"Glia-Request-Id": "f" * 16, "Content-Length": len(body), **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{k.replace('_', '-')}: {v}" for k, v in head.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def stream(*parts):
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return (b"HTTP/1.1 200 OK\r\nGlia-Request-Id: 1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)


def test_where_nobody_is_that_is_said_at_once(tmp_path):
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    for client in (glia.Client(f"http://127.0.0.1:{port}", token="x"),
                   glia.Client(f"unix:{tmp_path}/nobody.sock"), glia.Client(data_dir=tmp_path)):
        begin = time.monotonic()
        for ask in (client.node, lambda c=client: c.submit(NOOP, run_id="r"),
                    lambda c=client: c.wait("x"), lambda c=client: list(c.watch("x"))):
            with pytest.raises(glia.UnavailableError):
                ask()
        assert not client.is_ready()
        assert time.monotonic() - begin < AT_ONCE_S


def test_what_is_no_node_is_told_so():
    for answer in (b"220 mail.example.org ESMTP\r\n", b"\x00\x01\x02" * 100,
                   b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
                   b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                   b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
                   reply(b"no json"), reply(b"[]"), reply(b"<html>", status="500 Oh")):
        fake = Fake(answer)
        client = glia.Client(fake.address, token="t", patience=0.2)
        with pytest.raises(glia.NotANodeError):
            client.node()
        client = glia.Client(fake.address, token="t", patience=0.2)  # not over what is half closed
        with pytest.raises(glia.NotANodeError):
            client.submit(NOOP)
        assert len(fake.requests) == 2
        fake.close()


def test_only_what_is_safe_is_sent_twice():
    done = reply(b'{"job_id": "j", "run_id": "r", "status": "running"}', status="201 Created")
    for cut in (b"", b"HTTP/1.1 201 Crea", done[:-5]):
        for ask in (lambda c: c.cancel("j"), lambda c: c.signal("j", "s"), lambda c: c.remove("j"),
                    lambda c: c.respond("j", "s", "approve"), lambda c: c.pause("j")):
            fake = Fake(cut, done)
            with pytest.raises(glia.UnavailableError) as caught:
                ask(glia.Client(fake.address, token="t"))
            assert caught.value.code == "unknown" and "check" in caught.value.hint
            assert len(fake.requests) == 1
            fake.close()
        for ask in (lambda c: c.submit(NOOP, run_id="r"), lambda c: c.status("j"),
                    lambda c: c.submit(NOOP), lambda c: c.retry("j")):
            fake = Fake(cut, cut, done)
            ask(glia.Client(fake.address, token="t"))
            assert len(fake.requests) == 3
            fake.close()


def test_a_submission_that_stays_unanswered_may_have_been_done():
    busy = reply(b'{"error": {"code": "unavailable", "message": "stopping"}}', status="503 No")
    for answers in ((b"",), (b"", busy)):  # the first one may be a job, whatever follows
        for ask, code in ((lambda c: c.submit(NOOP), "unknown"),
                          (lambda c: c.retry("j"), "unknown"),
                          (lambda c: c.submit_many([glia.Submission()], flow=NOOP), "unknown"),
                          (lambda c: c.submit(NOOP, run_id="r"), "unavailable"),
                          (lambda c: c.submit(NOOP, request_key="k"), "unavailable")):
            fake = Fake(*answers)
            with pytest.raises(glia.UnavailableError) as caught:
                ask(glia.Client(fake.address, token="t", patience=0.2))
            assert caught.value.code == code
            assert len(fake.requests) > 1
            fake.close()
    fake = Fake(busy)  # it has refused every one
    with pytest.raises(glia.UnavailableError) as caught:
        glia.Client(fake.address, token="t", patience=0.2).submit(NOOP)
    assert caught.value.code == "unavailable"
    fake.close()


def test_an_answer_that_never_comes_or_trickles_is_a_timeout():
    head = b"HTTP/1.1 200 OK\r\nGlia-Request-Id: 1\r\nContent-Length: 1000\r\n"
    for answer, drip in ((None, b""), (head, b"X: "), (head + b"\r\n", b" ")):
        fake = Fake(answer, drip=drip)
        begin = time.monotonic()
        with pytest.raises(glia.RequestTimeout):
            glia.Client(fake.address, token="t", timeout=0.5).node()
        assert time.monotonic() - begin < AT_ONCE_S
        fake.close()


def event(seq, word="job_running"):
    data = json.dumps({"seq": seq, "type": word, "job_id": "j"})
    return f"id: {seq}\nevent: {word}\ndata: {data}\n\n".encode()


def test_events_come_once_however_a_stream_is_cut():
    end = b'event: end\ndata: {"status":"completed"}\n\n'
    fake = Fake(
        stream(b": hello\n\n", event(1), event(2)[:-1]),  # cut in the last byte of an event
        stream(event(2), event(3)) + b"0\r\n\r\n",  # an end that is none
        stream(event(2), event(3), event(4)[:20]),  # what was seen is told again
        stream(b'event: error\ndata: {"code": "unavailable", "message": "stopping"}\n\n'),
        b"",
        reply(b'{"error": {"code": "unavailable", "message": "no"}}', status="503 No"),
        stream(event(4, "job_completed"), end) + b"0\r\n\r\n")
    client = glia.Client(fake.address, token="t")
    assert [e.seq for e in client.watch("prefix")] == [1, 2, 3, 4]
    asked = [(r.split(b" ")[1].decode(), int(r.lower().split(b"last-event-id: ")[1].split()[0]))
             for r in fake.requests]
    jobs = "/v1/contexts/default/jobs"
    assert asked == [(f"{jobs}/prefix/events", 0)] + [
        (f"{jobs}/j/events", last) for last in (1, 3, 3, 3, 3, 3)]
    fake.close()


def test_an_error_in_a_stream_is_raised_if_it_lasts():
    fake = Fake(stream(event(1), b'event: error\ndata: {"code":"damaged","message":"bad"}\n\n'))
    seen = []
    with pytest.raises(glia.DamagedError):
        for one in glia.Client(fake.address, token="t").watch("j"):
            seen.append(one.seq)
    assert seen == [1]
    fake.close()


def test_a_log_goes_on_behind_what_was_dropped():
    """Places count what was ever written: a mark stands for its bytes, other lines for theirs."""
    first, later = b"1000 o one\n", b"2000 e two\n"
    full = b"-- 7 bytes dropped: disk full --\n"
    mark = b"-- 500 bytes dropped --\n"

    def page(body, following, ended):
        return reply(body, Glia_Next_Offset=following, Glia_Ended=ended, Glia_Attempt=1)

    at = len(first) + len(full) + 500 + len(later)
    fake = Fake(page(first, len(first), "false"), page(b"", len(first), "false"),
                stream(full, mark, later, b"3000 o thr"),  # cut in a line
                page(b"3000 o three\n", at + 13, "false"), page(b"", at + 13, "true"))
    lines = glia.Client(fake.address, token="t").logs("j", "s", attempt=1, follow=True)
    assert [(x.stream, x.text) for x in lines] == [
        ("stdout", "one"), ("dropped", full.decode().strip()), ("dropped", mark.decode().strip()),
        ("stderr", "two"), ("stdout", "three")]
    assert f"offset={at}&".encode() in fake.requests[3]
    fake.close()


def test_an_iterator_that_is_left_lets_its_connection_go(box):
    client = glia.Client(data_dir=box.data)
    job = client.submit({"steps": {"a": {"sh": "echo x; sleep 600"}}})
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(30):
        for _one in client.watch(job):
            break
        lines = client.logs(job, "a", follow=True)
        next(lines)
        lines.close()
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_a_body_that_is_too_large_is_refused_with_the_nodes_words(box):
    client = glia.Client(data_dir=box.data)
    with pytest.raises(glia.LimitError) as caught:
        client.submit(NOOP, files={"x": b"x" * (70 << 20)})
    assert caught.value.status == 413 and caught.value.request_id
