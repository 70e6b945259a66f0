"""`puffer play --sound`: what is heard in the window and on the page, by steps and in real time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gbxcule_puffer import cli
from gbxcule_puffer.apps.play.browser import BrowserPlay
from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.speaker import FIRST_SECONDS, Speaker
from tests.apps.test_play_in_time import turn_until
from tests.conformance.test_sound import rom_of
from tests.emulator.probes.test_samples import BAND
from tests.support.browser import Browser, wait_for


@pytest.fixture
def session(tmp_path: Path) -> PlaySession:
    """A game whose four channels play from its start on."""
    rom = tmp_path / "band.gb"
    rom.write_bytes(rom_of(bytes.fromhex(BAND)))
    return PlaySession(rom, tmp_path / "out", sound=True)


def test_steps_and_real_time_sound_as_in_pyboy(session: PlaySession) -> None:
    machine = PyBoyMachine(session.rom.read_bytes(), 1, 1, sound=True)
    expected = []
    for _ in range(48 + 5):
        machine.pyboy.tick(1, True, True)
        expected.append(machine.pyboy.sound.ndarray.copy())
    session.press("NOOP")
    session.press("NOOP")
    heard = [session.take_sound()]
    session.set_real_time(True)
    for _ in range(5):
        session.frame()
        heard.append(session.take_sound())
    assert not len(session.take_sound())
    np.testing.assert_array_equal(np.concatenate(heard), np.concatenate(expected))
    muted = PlaySession(session.rom, None)
    muted.press("NOOP")
    assert not len(muted.take_sound()) and type(muted.emulator) is Emulator


def test_the_speaker(monkeypatch: pytest.MonkeyPatch) -> None:
    """By SDL's driver that plays nothing, but takes its time."""
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    speaker = Speaker("leave --sound out")
    speaker.play(np.zeros((0, 2), np.uint8))
    assert speaker.waiting == 0
    for _ in range(2):
        speaker.play(np.full((9_600, 2), 60, np.uint8))
    waiting = speaker.waiting
    assert 0 < waiting <= 0.4 + FIRST_SECONDS
    wait_for(lambda: speaker.waiting < waiting)
    for _ in range(10):
        speaker.play(np.full((9_600, 2), 60, np.uint8))
    assert speaker.waiting < 0.75, "what cannot be played in time is dropped"
    speaker.close()
    monkeypatch.setenv("SDL_AUDIODRIVER", "none")
    with pytest.raises(ConfigError, match=r"nothing can be heard here .*: leave --sound out"):
        Speaker("leave --sound out")


HEAR = "window.ear = new AnalyserNode(audio), speaker.connect(ear), 0"
STARTS = """(window.starts = [], window.begin = AudioBufferSourceNode.prototype.start,
  AudioBufferSourceNode.prototype.start = function (when) {
    starts.push([when, this.buffer.length]);
    begin.call(this, when);
  })"""
LOUD = """(() => {
  const heard = new Float32Array(2048);
  ear.getFloatTimeDomainData(heard);
  return Math.max(...heard) - Math.min(...heard);
})()"""


def test_sound_on_the_page(session: PlaySession) -> None:
    """It begins with the first touch, and each sample comes once."""
    page = BrowserPlay(session, "127.0.0.1:0")
    with Browser(400, 860) as browser:
        browser.open(page.server.url)
        turn_until(page, lambda: browser.run("typeof header !== 'undefined' && header.status !== undefined"))
        assert browser.run("hello.sound && audio === null")
        browser.touch("touchStart", "[data-key=r]")
        browser.touch("touchEnd")
        turn_until(page, lambda: browser.run("header.real_time && audio?.state === 'running'"), 200)
        browser.run(HEAR)
        turn_until(page, lambda: browser.run(LOUD) > 0.05)
        samples = browser.run(f"{STARTS}, played")
        turn_until(page, lambda: browser.run("played") > samples + 20_000)
        starts, later = browser.run("[starts, played]")
        ends = [when + length / 48_000 for when, length in starts]
        assert all(when > end - 1e-6 for (when, _), end in zip(starts[1:], ends, strict=False)), "none over another"
        assert 0 < sum(length for _, length in starts) <= later - samples
    page.close()


def test_a_state_of_a_muted_game_is_one_line(session: PlaySession, tmp_path: Path, capsys) -> None:
    state = tmp_path / "muted.state"
    Emulator(session.rom).save(0).to_file(state)
    assert cli.main(["play", str(session.rom), "--sound", "--start-state", str(state), "--terminal"]) == 2
    assert "sound=False" in capsys.readouterr().err
