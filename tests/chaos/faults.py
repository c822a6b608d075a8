"""What happens to the device of a server that is tilewired_faulty (faulty_device.cc)."""
from disturbances import NO_SERVER, UNTAKEN, everybody_again, told

LOST = ("INTERNAL", "")  # its own words are for the log
KINDS = ("copy_in", "copy_out", "launch")


def tell(world, line):
    told(world, "device", lambda: world.served.say(line))


def slow_device(world, rng):
    """Every copy and launch takes milliseconds longer: calls take their time, and none fails."""
    tell(world, f"slow {rng.choice([2_000, 10_000, 40_000])}")
    world.more_calls()
    tell(world, "well")
    world.more_calls()


def one_fault(world, kind, number):
    before = world.failed("INTERNAL")
    tell(world, f"fail {kind} {number}")
    world.until(lambda: world.failed("INTERNAL") > before, f"a call that a failed {kind} ends")


def device_faults(world, rng):
    """Copies and launches fail now and then: those calls end INTERNAL, and nothing else comes of it."""
    with world.allowing("device faults", LOST, cut=True):
        for _ in range(rng.randint(2, 5)):
            one_fault(world, rng.choice(KINDS), rng.randint(1, 8))
        tell(world, "well")
        everybody_again(world)


def dead_device(world, rng):
    """The device is gone for good: the server tells its callers and ends with exit code 70. Then a new one."""
    with world.allowing("dead device", LOST, NO_SERVER, UNTAKEN, ("NOT_FOUND", ""), gone=True, cut=True):
        world.keep_slope()
        world.served.say(f"fail {rng.choice(KINDS)} {rng.randint(1, 8)} for-good")
        world.until(lambda: not world.served.alive(), "the end of a server without a device", dead=True)
        code = world.served.end_reading()
        if code != 70:
            world.wrong.append(f"exit code {code} without a device: {world.served.log[-5:]}")
        world.served.expected += 1
        world.served.start()
        everybody_again(world)


FAULTS = {what.__name__: what for what in (slow_device, device_faults, dead_device)}
