"""A place in memory that fails when it is told to."""

from sharecons.spark.storage import Storage


class Killed(BaseException):
    """The process ended here; what is in memory is gone."""


class MemoryStorage(Storage):
    """Files in a dict. `fate` is what becomes of the next file that is created."""

    def __init__(self):
        self.files = {}
        self.fate = None
        self.removals = None
        self.created = 0

    def list_names(self):
        return list(self.files)

    def read(self, name):
        try:
            return self.files[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    def create(self, name, data):
        fate, self.fate = self.fate, None
        if fate == "killed before":
            raise Killed
        if fate == "failed":
            raise TimeoutError("no answer from the store")
        if name in self.files:
            raise FileExistsError(name)
        self.files[name] = data
        self.created += 1
        if fate == "killed after":
            raise Killed
        if fate == "answer lost":
            raise TimeoutError("no answer from the store")
        if fate == "repeated":
            raise FileExistsError(name)

    def remove(self, name):
        if self.removals is not None:
            if self.removals == 0:
                self.removals = None
                raise Killed
            self.removals -= 1
        self.files.pop(name, None)

    def lock(self, who):
        return None

    def unlock(self):
        pass
