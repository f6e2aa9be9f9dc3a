"""The store that tests of whole programs run on, chosen by GLIA_TEST_STORE: sqlite (the default),
redis or postgres. A server is private to the run; every data folder gets an empty database of it,
which is emptied and lent again when the folder's test is over."""

import os
import threading

from servers import PostgresServer, RedisServer

STORE = os.environ.get("GLIA_TEST_STORE") or "sqlite"
DATABASES = 4096
# A further context of a store in Redis takes the next database that is free.
SPACING = 8


class RedisLender:
    """Logical databases of one server."""

    def __init__(self):
        self.server = RedisServer(databases=DATABASES)

    def make(self, number):
        assert (number + 1) * SPACING <= DATABASES, "too many data folders at once"
        return f"redis://127.0.0.1:{self.server.port}/{number * SPACING}"

    def empty(self, number):
        with self.server.connect() as redis:
            for database in range(number * SPACING, (number + 1) * SPACING):
                redis.ask("SELECT", database)
                redis.ask("FLUSHDB")


class PostgresLender:
    """Databases of one server. A node has six connections, and crash tests have many nodes."""

    def __init__(self):
        self.server = PostgresServer(max_connections="400")

    def make(self, number):
        self.server.sql(f"CREATE DATABASE t{number}", "postgres")
        return f"postgres://glia@127.0.0.1:{self.server.port}/t{number}"

    def empty(self, number):
        """What the dead have begun is undone first: it would hold locks."""
        self.server.sql("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                        f" WHERE datname = 't{number}'", "postgres")
        self.server.sql("DO $$ DECLARE s text; BEGIN FOR s IN SELECT nspname FROM pg_namespace"
                        " WHERE nspname ~ '^glia(_|$)' LOOP"
                        " EXECUTE format('DROP SCHEMA %I CASCADE', s); END LOOP; END $$",
                        f"t{number}")


class Lender:
    """Lends databases of the chosen server; safe to use from several threads. The server dies with
    the thread that starts it, so that must be the main one."""

    def __init__(self, store):
        self.of = {"redis": RedisLender, "postgres": PostgresLender}[store]()
        self.lock = threading.Lock()
        self.numbers = {}  # URL -> number of its database
        self.clean = []    # URLs of empty ones

    def __enter__(self):
        self.of.server.start()
        return self

    def __exit__(self, *_):
        self.of.server.close()

    def take(self):
        """The URL of an empty store."""
        with self.lock:
            if self.clean:
                return self.clean.pop()
            number = len(self.numbers)
            url = self.of.make(number)
            self.numbers[url] = number
            return url

    def give_back(self, url):
        """Nobody uses it any more."""
        self.of.empty(self.numbers[url])
        with self.lock:
            self.clean.append(url)
