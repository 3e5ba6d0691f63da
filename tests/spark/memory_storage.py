"""A storage in memory that fails on request."""

from sharecons.spark.storage import Storage


class Killed(BaseException):
    """The process was killed here."""


class MemoryStorage(Storage):
    """Files in a dict.

    Attributes:
        fault: the fault of the next file that is created.
        removals_left: how many files are removed before the process is killed.
    """

    def __init__(self):
        self.files = {}
        self.fault = None
        self.removals_left = None
        self.created = 0

    def list_names(self):
        return list(self.files)

    def read(self, name):
        try:
            return self.files[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    def create(self, name, data):
        fault, self.fault = self.fault, None
        if fault == "killed before":
            raise Killed
        if fault == "failed":
            raise TimeoutError("no response from the store")
        if name in self.files:
            raise FileExistsError(name)
        self.files[name] = data
        self.created += 1
        if fault == "killed after":
            raise Killed
        if fault == "response lost":
            raise TimeoutError("no response from the store")
        if fault == "repeated":
            raise FileExistsError(name)

    def remove(self, name):
        if self.removals_left is not None:
            if self.removals_left == 0:
                self.removals_left = None
                raise Killed
            self.removals_left -= 1
        self.files.pop(name, None)

    def lock(self, who):
        return None

    def unlock(self):
        pass
