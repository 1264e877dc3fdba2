"""quiet_gate: kernels of fillers wait until training has launched nothing for `quiet`."""
import bubblesim


class QuietGate(bubblesim.Policy):
    def __init__(self, parameters):
        super().__init__()
        self.quiet, self.opens, self.waiting = parameters["quiet"], 0, set()

    def on_launch(self, launch, now, actions):
        if launch.client == 0:
            self.opens = now + self.quiet
        elif launch.kind == bubblesim.LaunchKind.KERNEL and now < self.opens:
            self.waiting.add(launch.client)
            return bubblesim.HOLD
        return bubblesim.ADMIT

    def next_tick(self):
        return self.opens if self.waiting else None

    def on_tick(self, now, actions):
        for client in sorted(self.waiting) if now >= self.opens else ():
            for _ in range(actions.held(client)):
                actions.release(client)
            self.waiting.discard(client)


quiet = bubblesim.declare_duration("quiet", bubblesim.us(100), 1, bubblesim.seconds(1),
                                   help="Fillers pass when training is quiet for so long.",
                                   source="none: an example")
bubblesim.register("quiet_gate", QuietGate, parameters=[quiet])

if __name__ == "__main__":
    report = bubblesim.run("configs/runs/example.json", policies=["mps", "quiet_gate"])
    for policy in report["policies"]:
        print(policy["policy"], policy["training"]["iterations_per_s"])
