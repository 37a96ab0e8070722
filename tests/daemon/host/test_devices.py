"""Device names are unique, and the best device is the usable one with the highest score."""

from __future__ import annotations

from msgspec import structs

from llmd.api.device import DeviceInfo
from llmd.host.devices import DeviceState, best, named, ranked, unique_names
from llmd.host.names import PluginName

ONE = PluginName("one", "one", "made-one", "1.0")
TWO = PluginName("two", "two", "made-two", "2.0")


def device(name: str, *, score: int = 1, ok: bool = True, plugin: PluginName = ONE) -> DeviceState:
    info = DeviceInfo(name, "toy", score, 1 << 30, ("f32",), ("f32",), ("embed",))
    return DeviceState(info, plugin.name, plugin, ok=ok)


def test_the_second_device_of_a_name_is_set_aside() -> None:
    first, second = unique_names([device("gpu:0"), device("gpu:0", plugin=TWO)])
    assert (first.ok, second.ok) == (True, False)
    assert "made-one" in second.reason
    assert "made-two" in second.reason
    assert second.fix


def test_a_name_given_twice_by_one_plugin_is_set_aside_too() -> None:
    first, second = unique_names([device("gpu:0"), device("gpu:0", score=2)])
    assert (first.ok, second.ok) == (True, False)
    assert second.fix == "report it to the authors of made-one"


def test_a_device_that_cannot_be_used_takes_no_name_from_one_that_can() -> None:
    devices = (device("gpu:0", ok=False), device("gpu:0", plugin=TWO))
    assert unique_names(devices) == devices
    assert named("gpu:0", devices) == devices[1]
    assert named("gpu:0", devices[:1]) == devices[0]
    assert named("gpu:1", devices) is None


def test_devices_are_found_by_their_aliases() -> None:
    one, other = device("gpu:0"), device("gpu:1")
    other = structs.replace(other, info=structs.replace(other.info, aliases=("GPU-7",)))
    assert named("GPU-7", [one, other]) == other
    assert named("gpu:1", [one, other]) == other
    assert named("GPU-8", [one, other]) is None


def test_different_names_stay_as_they_are() -> None:
    devices = (device("gpu:0"), device("gpu:1"), device("cpu", plugin=TWO))
    assert unique_names(devices) == devices


def test_the_highest_score_among_usable_devices_wins() -> None:
    devices = [device("broken", score=9, ok=False), device("slow"), device("fast", score=5)]
    assert best(devices) == devices[2]


def test_usable_devices_are_ranked_by_score() -> None:
    devices = [device("broken", score=9, ok=False), device("slow"), device("fast", score=5), device("slower")]
    assert [one.info.name for one in ranked(devices)] == ["fast", "slow", "slower"]


def test_the_first_of_equals_wins() -> None:
    devices = [device("a"), device("b")]
    assert best(devices) == devices[0]


def test_there_may_be_no_usable_device() -> None:
    assert best([device("broken", ok=False)]) is None
