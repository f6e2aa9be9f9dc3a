"""A file system of a few MiB, and what fills it. Only root can mount one."""

import os
import shutil
import subprocess


class SmallDisk:
    """It is there from the start, and gone after `close`."""

    def __init__(self, folder, mib, user=None, group=None):
        self.path = os.path.join(folder, "disk")
        os.makedirs(self.path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=700", "glia-test",
                        self.path], check=True)
        if user:
            shutil.chown(self.path, user, group)

    def fill(self):
        with open(os.path.join(self.path, "ballast"), "wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def free(self):
        os.remove(os.path.join(self.path, "ballast"))

    def close(self):
        subprocess.run(["umount", "-l", self.path], check=True)
