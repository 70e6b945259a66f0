"use strict";
// The wall in the browser. A message of bytes is: length of the header (uint32), the header as JSON, three float32 a Game Boy
// (actions, rewards, returns), the watched bytes of RAM, the pictures, four pixels a byte, the leftmost in bits 7 and 6, or
// in colour two bytes a pixel, red in bits 4 to 0, and `cells` bytes of the map (map.js).
const $ = (id) => document.getElementById(id);
const SHADES = [[0xe8, 0xf0, 0xd0], [0xa4, 0xb8, 0x84], [0x58, 0x70, 0x4c], [0x18, 0x22, 0x14]];
const COLOURS = SHADES.map(([r, g, b]) => (0xff000000 | b << 16 | g << 8 | r) >>> 0);
const LIT = [0xb9, 0xd6, 0x5c];
const FIGURES = [
  ["steps", "step", 0], ["steps a second", "charts/SPS", 0], ["success", "charts/success_rate", 2],
  ["evaluated", "eval/success_rate", 2], ["return", "charts/episodic_return", 2], ["length", "charts/episodic_length", 1],
];
const GAP = 2;
let hello = null, socket = null, chosen = 0, paused = false, last = null, returns = [];

// Columns and rows of the wall: about 1.45 times as wide as high, with as few empty places as that allows.
const tiles = () => {
  const count = hello.envs.length, ideal = Math.sqrt(count * hello.rows / hello.columns * 1.45);
  let best = [count, 1], least = Infinity;
  for (let columns = Math.ceil(0.8 * ideal); columns <= Math.ceil(1.3 * ideal); columns++) {
    const rows = Math.ceil(count / columns), worse = (columns * rows - count) / count + 0.2 * Math.abs(Math.log(columns / ideal));
    if (worse < least) [best, least] = [[columns, rows], worse];
  }
  return best;
};
const tell = (message) => socket && socket.readyState === 1 && socket.send(JSON.stringify(message));
const text = (value, digits) => value === null || value === undefined ? "–"
  : value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});

function connect() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(`${scheme}//${location.host}/socket${location.search}`);
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({data}) => typeof data === "string" ? greet(JSON.parse(data)) : show(data);
  socket.onclose = () => { $("state").textContent = "not connected: the run has ended, or is starting again"; setTimeout(connect, 2000); };
}

function greet(message) {
  hello = message;
  chosen = 0;
  returns = [];
  $("title").textContent = document.title = hello.title;
  const count = hello.envs.length;
  $("state").textContent = count < hello.num_envs ? `${count} of ${text(hello.num_envs, 0)} Game Boys` : `${count} Game Boys`;
  const [across, down] = tiles();
  $("wall").width = across * (hello.columns + GAP) + GAP;
  $("wall").height = down * (hello.rows + GAP) + GAP;
  $("screen").width = hello.columns;
  $("screen").height = hello.rows;
  $("step").hidden = $("rate").hidden = !hello.controls;
  $("ram").hidden = !hello.ram;
  $("map").hidden = !hello.map;
  forgetMap();
  $("pad").replaceChildren(...hello.actions.map((name) => Object.assign(document.createElement("span"), {textContent: name})));
  $("speed").value = Math.log(hello.speed) / Math.log(240) * 100;
  showSpeed();
  choose(0);
}

function show(data) {
  if (!hello || (paused && !hello.controls)) return;
  const length = new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  const count = hello.envs.length, begin = 4 + length, watched = header.watches.length;
  const numbers = new Float32Array(data.slice(begin, begin + 12 * count));
  const ram = new Uint8Array(data, begin + 12 * count, hello.ram ? watched : 0);
  const size = hello.rows * hello.columns, pictures = new Uint32Array(size * count);
  const bytes = new Uint8Array(data, begin + 12 * count + ram.length, size * count * (header.colors ? 2 : 1 / 4));
  if (header.colors) for (let i = 0; i < pictures.length; i++) pictures[i] = colour(bytes[2 * i] | bytes[2 * i + 1] << 8);
  else for (let i = 0; i < bytes.length; i++) for (let k = 0; k < 4; k++) pictures[4 * i + k] = COLOURS[bytes[i] >> (6 - 2 * k) & 3];
  if (hello.controls) setPaused(header.paused);
  last = {header, numbers, ram, pictures, count};
  if (hello.map) readMap(data.slice(begin + 12 * count + ram.length + bytes.length), count);
  returns.push(numbers[2 * count + chosen]);
  if (returns.length > 320) returns.shift();
  draw();
}

function draw() {
  if (!last) return;
  const {header, numbers, ram, pictures, count} = last;
  drawWall(pictures, count);
  const size = hello.rows * hello.columns, screen = $("screen").getContext("2d");
  const image = screen.createImageData(hello.columns, hello.rows);
  new Uint32Array(image.data.buffer).set(pictures.subarray(chosen * size, (chosen + 1) * size));
  screen.putImageData(image, 0, 0);
  const action = numbers[chosen];
  [...$("pad").children].forEach((each, number) => each.classList.toggle("on", number === action));
  $("action").textContent = hello.actions[action] ?? action;
  $("reward").textContent = text(numbers[count + chosen], 3);
  $("return").textContent = text(numbers[2 * count + chosen], 3);
  drawReturns();
  if (hello.map) drawMap(chosen);
  const rows = header.focus === chosen ? header.watches.map((address, i) => [address.toString(16).toUpperCase(), ram[i]]) : [];
  $("watches").replaceChildren(...rows.map(([address, value]) => {
    const row = document.createElement("tr");
    for (const cell of [address, value, value.toString(16).padStart(2, "0").toUpperCase()])
      row.append(Object.assign(document.createElement("td"), {textContent: cell}));
    return row;
  }));
  figures("figures", FIGURES.filter(([, key]) => key in header).map(([name, key, digits]) => [name, text(header[key], digits)]));
  figures("losses", Object.keys(header).filter((key) => key.startsWith("losses/"))
    .map((key) => [key.slice(7).replaceAll("_", " "), text(header[key], 4)]));
}

const colour = (rgb) => 0xff000000 | (rgb & 0x7c00) << 9 | (rgb & 0x3e0) << 6 | (rgb & 31) << 3;

function drawWall(pictures, count) {
  const canvas = $("wall"), context = canvas.getContext("2d"), [across] = tiles();
  const image = context.createImageData(canvas.width, canvas.height), pixels = new Uint32Array(image.data.buffer);
  const {rows, columns} = hello;
  for (let n = 0; n < count; n++) {
    const left = n % across * (columns + GAP) + GAP, top = Math.floor(n / across) * (rows + GAP) + GAP;
    if (n === chosen) {
      const lit = 0xff000000 | LIT[2] << 16 | LIT[1] << 8 | LIT[0];
      for (let y = -GAP; y < rows + GAP; y++) pixels.fill(lit, (top + y) * canvas.width + left - GAP, (top + y) * canvas.width + left + columns + GAP);
    }
    for (let y = 0; y < rows; y++) {
      const to = (top + y) * canvas.width + left, from = (n * rows + y) * columns;
      pixels.set(pictures.subarray(from, from + columns), to);
    }
  }
  context.putImageData(image, 0, 0);
}

function drawReturns() {
  const canvas = $("returns"), context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  const low = Math.min(0, ...returns), high = Math.max(0, ...returns), range = high - low || 1;
  const y = (value) => 52 - (value - low) / range * 48;
  context.strokeStyle = "#38422f";
  context.strokeRect(0, y(0), canvas.width, 0);
  context.strokeStyle = "#b9d65c";
  context.beginPath();
  returns.forEach((value, x) => context.lineTo(x, y(value)));
  context.stroke();
}

function figures(id, values) {
  $(id).replaceChildren(...values.map(([name, value]) => {
    const box = Object.assign(document.createElement("div"), {className: "figure"});
    box.append(Object.assign(document.createElement("span"), {textContent: name}), Object.assign(document.createElement("b"), {textContent: value}));
    return box;
  }));
}

function choose(number) {
  if (!hello || number < 0 || number >= hello.envs.length) return;
  chosen = number;
  returns = [];
  $("name").textContent = `Game Boy ${hello.envs[number]}`;
  watch();
  draw();
}

function watch() {
  const found = $("addresses").value.match(/[0-9a-f]+/gi) ?? [];
  tell({focus: chosen, watches: found.map((word) => parseInt(word, 16))});
}

function setPaused(value) {
  paused = value;
  $("pause").textContent = paused ? "Go on" : "Pause";
}

const speed = () => Math.round(240 ** ($("speed").value / 100) * 10) / 10;
const showSpeed = () => { $("speed-text").value = `${text(speed(), 1)} steps/s`; };
const togglePause = () => { setPaused(!paused); if (hello?.controls) tell({paused}); };
const oneStep = () => { setPaused(true); tell({paused: true, step: true}); };

$("wall").onclick = (event) => {
  const canvas = $("wall"), scale = canvas.width / canvas.clientWidth, [across] = tiles();
  choose(Math.floor(event.offsetX * scale / (hello.columns + GAP)) + across * Math.floor(event.offsetY * scale / (hello.rows + GAP)));
};
$("wall").onkeydown = (event) => {
  const by = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -tiles()[0], ArrowDown: tiles()[0]}[event.key];
  if (by) { event.preventDefault(); choose(chosen + by); }
};
$("pause").onclick = togglePause;
$("step").onclick = oneStep;
$("speed").oninput = () => { showSpeed(); tell({speed: speed()}); };
$("addresses").oninput = watch;
$("ram").onsubmit = (event) => event.preventDefault();
document.onkeydown = (event) => {
  if (["INPUT", "BUTTON"].includes(event.target.tagName)) return;
  if (event.key === " ") { event.preventDefault(); togglePause(); }
  if (event.key === "." && hello?.controls) oneStep();
};
connect();
