"""Threads that run beside programs that tests kill."""

import threading

__all__ = ["Background", "BrokerRestarter"]


class Background(threading.Thread):
    """A thread that runs beside the killed programs; `end` raises its error."""

    def __init__(self, scene):
        super().__init__(daemon=True)
        self.scene = scene
        self.over = threading.Event()
        self.error = None
        self.start()

    def run(self):
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def end(self):
        self.over.set()
        self.join(120)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error


class BrokerRestarter(Background):
    """Kills a leader every 40 seconds, and starts it again."""

    def work(self):
        kafka, times = self.scene.kafka, 0
        while not times or not self.over.wait(40):
            node_id = kafka.admin.leader(self.scene.topic, times % 3)
            if node_id in kafka.cluster.running:
                kafka.cluster.kill(node_id)
                self.over.wait(2)
                kafka.cluster.start_broker(node_id)
                times += 1
