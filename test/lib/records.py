"""What stands in the store of a data folder, past the node: to be looked at, or spoiled."""

import json
import os
import sqlite3
from urllib.parse import urlparse

from servers import Redis


def open_records(box):
    """Of the default context. With SQLite, what is changed is there when it is closed."""
    url = urlparse(box.env.get("GLIA_STORE", "sqlite:"))
    kinds = {"sqlite": SqliteRecords, "redis": RedisRecords, "postgres": PostgresRecords}
    return kinds[url.scheme](box, url)


class Records:
    """`write` leaves a record without a checksum, so that whoever reads it has to find out, unless
    the old one is kept."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def change(self, kind, name, /, keep_sum=False, **fields):
        self.write(kind, name, json.dumps(json.loads(self.read(kind, name)) | fields), keep_sum)


class SqliteRecords(Records):
    def __init__(self, box, _):
        self.db = sqlite3.connect(os.path.join(box.data, "contexts/default/state.db"))

    def close(self):
        self.db.commit()
        self.db.close()

    def column(self, sql, *values):
        return [row[0] for row in self.db.execute(sql, values)]

    def ids(self, kind):
        return self.column("SELECT id FROM record WHERE kind = ?", kind)

    def logs(self):
        return self.column("SELECT DISTINCT id FROM log")

    def index(self, name):
        return self.column("SELECT id FROM entry WHERE name = ?", name)

    def read(self, kind, name):
        return self.column("SELECT value FROM record WHERE kind = ? AND id = ?", kind, name)[0]

    def write(self, kind, name, value, keep_sum=False):
        done = self.db.execute("UPDATE record SET value = ?, sum = CASE WHEN ? THEN sum ELSE 0 END"
                               " WHERE kind = ? AND id = ?", (value, keep_sum, kind, name))
        assert done.rowcount == 1

    def remove(self, kind, name):
        done = self.db.execute("DELETE FROM record WHERE kind = ? AND id = ?", (kind, name))
        assert done.rowcount == 1


class RedisRecords(Records):
    def __init__(self, _, url):
        self.redis = Redis(url.port)
        self.redis.ask("SELECT", url.path.lstrip("/"))

    def close(self):
        self.redis.close()

    def texts(self, *words):
        return [x.decode() for x in self.redis.ask(*words)]

    def ids(self, kind):
        return self.texts("ZRANGE", f"glia:.ids:{kind}", 0, -1)

    def logs(self):
        head = "glia:.log:events:"
        return [key[len(head):] for key in self.texts("KEYS", head + "*")]

    def index(self, name):
        """A member is a score, a colon and the id."""
        return [m.split(":", 1)[1] for m in self.texts("ZRANGE", f"glia:.index:{name}", 0, -1)]

    def read(self, kind, name):
        return self.redis.ask("HGET", f"glia:{kind}:{name}", "v").decode()

    def write(self, kind, name, value, keep_sum=False):
        assert self.redis.ask("EXISTS", f"glia:{kind}:{name}") == 1
        self.redis.ask("HSET", f"glia:{kind}:{name}", "v", value, *(() if keep_sum else ("c", 0)))

    def remove(self, kind, name):
        assert self.redis.ask("DEL", f"glia:{kind}:{name}") == 1
        self.redis.ask("ZREM", f"glia:.ids:{kind}", name)
        self.redis.ask("ZREM", f"glia:.live:{kind}", name)


class PostgresRecords(Records):
    def __init__(self, box, url):
        self.server, self.database = box.lender.of.server, url.path.lstrip("/")

    def close(self):
        """Nothing is open."""

    def column(self, sql):
        return self.server.sql(sql, self.database).splitlines()

    def ids(self, kind):
        return self.column(f"SELECT id FROM glia_default.records WHERE kind = '{kind}'")

    def logs(self):
        return self.column("SELECT DISTINCT id FROM glia_default.logs")

    def index(self, name):
        return self.column(f"SELECT id FROM glia_default.entries WHERE name = '{name}'")

    @staticmethod
    def where(kind, name):
        return f"WHERE kind = '{kind}' AND id = decode('{name.encode().hex()}', 'hex')"

    def read(self, kind, name):
        found = self.column("SELECT encode(value, 'hex') FROM glia_default.record"
                            f" {self.where(kind, name)}")
        return bytes.fromhex("".join(found)).decode()

    def write(self, kind, name, value, keep_sum=False):
        assert len(self.column(
            f"UPDATE glia_default.record SET value = decode('{value.encode().hex()}', 'hex')"
            f"{'' if keep_sum else ', sum = 0'} {self.where(kind, name)} RETURNING 1")) == 1

    def remove(self, kind, name):
        assert len(self.column(
            f"DELETE FROM glia_default.record {self.where(kind, name)} RETURNING 1")) == 1
