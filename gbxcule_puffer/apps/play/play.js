"use strict";
// A game in the browser. A message of bytes is: length of the header (uint32), the header as JSON, and one or two pictures,
// four pixels a byte, the leftmost in bits 7 and 6, or in colour two bytes a pixel, red in bits 4 to 0. Behind them is sound: two bytes
// a sample, 0 to 60, left and right, from sample number header.heard on. The page sends {key}, as `puffer play` names keys, and {held}, the buttons; ram.js has the rest.
const $ = (id) => document.getElementById(id);
const SHADES = [[0xe8, 0xf0, 0xd0], [0xa4, 0xb8, 0x84], [0x58, 0x70, 0x4c], [0x18, 0x22, 0x14]];
const COLOURS = SHADES.map(([r, g, b]) => (0xff000000 | b << 16 | g << 8 | r) >>> 0);
const BUTTONS = {
  ArrowUp: "UP", ArrowDown: "DOWN", ArrowLeft: "LEFT", ArrowRight: "RIGHT", a: "A", x: "A", s: "B", y: "B", Enter: "START", Backspace: "SELECT",
};
const STEPS = {UP: "up", DOWN: "down", LEFT: "left", RIGHT: "right", A: "a", B: "s", START: "enter", SELECT: "backspace"};
const KEYS = {" ": "space", g: "b"};
const PAD = {12: "UP", 13: "DOWN", 14: "LEFT", 15: "RIGHT", 1: "A", 0: "B", 9: "START", 8: "SELECT"};
const WIDTH = 160, HEIGHT = 144;
let hello = null, socket = null, header = {}, held = new Set(), gamepad = new Set();

const tell = (message) => socket && socket.readyState === 1 && socket.send(JSON.stringify(message));
const runs = () => header.real_time;

function connect() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(`${scheme}//${location.host}/socket${location.search}`);
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({data}) => typeof data === "string" ? read(JSON.parse(data)) : show(data);
  socket.onclose = () => {
    if (header.finished) return;
    $("status").textContent = "not connected: the game has ended, or is starting again";
    setTimeout(connect, 2000);
  };
}

const read = (message) => message.ram ? showRam(message.ram) : greet(message);

function greet(message) {
  hello = message;
  greetRam(hello);
  $("title").textContent = document.title = hello.title;
  for (const each of document.querySelectorAll(".of-agent")) each.hidden = !hello.agent;
  for (const each of document.querySelectorAll(".of-goal")) each.hidden = !hello.goal;
  for (const each of document.querySelectorAll(".of-play")) each.hidden = hello.goal;
  $("mark").textContent = hello.goal ? "Start here" : "Save state";
}

function show(data) {
  const length = new DataView(data).getUint32(0, true);
  header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  const size = WIDTH * HEIGHT * (header.colors ? 2 : 1 / 4);
  draw($("game"), new Uint8Array(data, 4 + length, size));
  $("other").hidden = !header.beside;
  $("games").classList.toggle("two", header.beside);
  if (header.beside) draw($("beside"), new Uint8Array(data, 4 + length + size, size));
  $("status").textContent = header.finished ? "the game has ended: this page can be closed" : header.paused ? "paused while you type" : header.status;
  $("player").textContent = header.agent_plays ? "the agent, for you" : "you";
  $("real").classList.toggle("on", header.real_time);
  $("takes").classList.toggle("on", header.agent_plays);
  for (const each of document.querySelectorAll("[data-key=b]")) each.classList.toggle("on", header.beside);
  for (const each of document.querySelectorAll(".of-steps")) each.hidden = header.real_time;
  const pressed = header.pressed.split("+");
  for (const each of document.querySelectorAll("[data-button]")) each.classList.toggle("on", pressed.includes(each.dataset.button));
  play(header.heard, new Uint8Array(data, 4 + length + size * (header.beside ? 2 : 1)));
  $("written").textContent = header.written.length ? `saved: ${header.written.join(", ")}` : "";
}

// Sound begins with the first key or touch: before, a browser plays none. Messages overlap, since some may be lost.
const RATE = 48000, LOUDEST = 60, SOON = 0.05, LATEST = 0.25, LATEST_OF_STEPS = 1;  // seconds from now until a sound is played
let audio = null, speaker = null, played = 0, due = 0;

function wake() {
  if (!hello || !hello.sound) return;
  if (audio) return audio.resume();
  audio = new AudioContext({sampleRate: RATE});
  speaker = new BiquadFilterNode(audio, {type: "highpass", frequency: 20});  // the sum of the channels is never below 0
  speaker.connect(audio.destination);
}

function play(first, bytes) {
  const skipped = Math.max(0, played - first), count = bytes.length / 2 - skipped;
  if (count <= 0) return;
  played = first + bytes.length / 2;
  if (!audio || audio.state !== "running") return;
  const now = audio.currentTime;
  if (due < now) due = now + SOON;
  if (due > now + (header.real_time ? LATEST : LATEST_OF_STEPS)) return;
  const buffer = audio.createBuffer(2, count, RATE);
  for (const side of [0, 1]) {
    const samples = buffer.getChannelData(side);
    for (let i = 0; i < count; i++) samples[i] = bytes[2 * (skipped + i) + side] / (2 * LOUDEST);
  }
  const source = new AudioBufferSourceNode(audio, {buffer});
  source.connect(speaker);
  source.start(due);
  due += count / RATE;
}

for (const kind of ["keydown", "pointerdown", "pointerup"]) addEventListener(kind, wake, true);

const colour = (rgb) => 0xff000000 | (rgb & 0x7c00) << 9 | (rgb & 0x3e0) << 6 | (rgb & 31) << 3;

function draw(canvas, bytes) {
  const context = canvas.getContext("2d"), image = context.createImageData(WIDTH, HEIGHT), pixels = new Uint32Array(image.data.buffer);
  if (header.colors) for (let i = 0; i < pixels.length; i++) pixels[i] = colour(bytes[2 * i] | bytes[2 * i + 1] << 8);
  else for (let i = 0; i < bytes.length; i++) for (let k = 0; k < 4; k++) pixels[4 * i + k] = COLOURS[bytes[i] >> (6 - 2 * k) & 3];
  context.putImageData(image, 0, 0);
}

// A button goes down: in real time it is held, else it is one step.
function press(button) {
  if (!runs()) return tell({key: STEPS[button]});
  if (held.has(button)) return;
  held.add(button);
  tell({held: [...held]});
}

function release(button) {
  if (held.delete(button)) tell({held: [...held]});
}

function releaseAll() {
  if (held.size) tell({held: []});
  held.clear();
}

// What is typed into a field is not for the game, nor is the key that presses a focused button of the RAM.
const isTyped = ({target, key}) => target.matches?.("input, select") || (target.matches?.("#ram button, summary") && (key === "Enter" || key === " "));

document.onkeydown = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyped(event)) return;
  if (event.key === "/") { event.preventDefault(); $("condition").focus(); return; }
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key, button = BUTTONS[name];
  if (button || name === " ") event.preventDefault();
  if (button) press(button);
  else if (hello && hello.goal && name === "g") tell({key: "g"});
  else if (name in KEYS) tell({key: KEYS[name]});
  else if (!event.repeat && "mturpq".includes(name)) tell({key: name});
};
document.onkeyup = (event) => release(BUTTONS[event.key.length === 1 ? event.key.toLowerCase() : event.key]);
window.onblur = releaseAll;
for (const each of document.querySelectorAll("[data-button]")) {
  each.onpointerdown = (event) => { event.preventDefault(); each.setPointerCapture(event.pointerId); press(each.dataset.button); };
  each.onpointerup = each.onpointercancel = () => release(each.dataset.button);
  each.oncontextmenu = (event) => event.preventDefault();
  each.onkeydown = (event) => event.preventDefault();
}
for (const each of document.querySelectorAll("[data-key]")) each.onclick = () => { releaseAll(); tell({key: each.dataset.key}); each.blur(); };

function readGamepads() {
  const now = new Set();
  for (const pad of navigator.getGamepads?.() ?? []) {
    if (!pad) continue;
    for (const [index, button] of Object.entries(PAD)) if (pad.buttons[index]?.pressed) now.add(button);
    const [x, y] = pad.axes;
    if (x < -0.5) now.add("LEFT"); else if (x > 0.5) now.add("RIGHT");
    if (y < -0.5) now.add("UP"); else if (y > 0.5) now.add("DOWN");
  }
  for (const button of now) if (!gamepad.has(button)) press(button);
  for (const button of gamepad) if (!now.has(button)) release(button);
  gamepad = now;
  requestAnimationFrame(readGamepads);
}
requestAnimationFrame(readGamepads);
addEventListener("load", connect);  // ram.js is there then
