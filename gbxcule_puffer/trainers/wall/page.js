"use strict";
// The wall in the browser. A message of text is JSON: the greeting, or an object of one of `curves`, `watches`, `ended`. A
// message of bytes is: length of the header (uint32), the header as JSON, three float32 a Game Boy (actions, rewards,
// returns), the watched bytes of RAM, the pictures, four pixels a byte, the leftmost in bits 7 and 6, or in colour two bytes
// a pixel, red in bits 4 to 0, then `whole` bytes of the chosen Game Boy's whole picture, and `cells` bytes of the map.
const $ = (id) => document.getElementById(id);
const SHADES = [[0xe8, 0xf0, 0xd0], [0xa4, 0xb8, 0x84], [0x58, 0x70, 0x4c], [0x18, 0x22, 0x14]];
const COLOURS = SHADES.map(([r, g, b]) => (0xff000000 | b << 16 | g << 8 | r) >>> 0);
const LIT = [0xb9, 0xd6, 0x5c];
const GAP = 2, WHOLE = {rows: 144, columns: 160};
const RETRY = 2000, RETRY_ENDED = 5000, QUIET = 3;  // milliseconds; seconds without a picture after which the page says so
let hello = null, socket = null, chosen = 0, paused = false, last = null, whole = null, returns = [];
let ended = null, lostAt = null, shownAt = null;

const tell = (message) => socket && socket.readyState === 1 && socket.send(JSON.stringify(message));
const text = (value, digits) => value === null || value === undefined ? "–"
  : value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});
const two = (number) => String(number).padStart(2, "0");

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(`${scheme}//${location.host}/socket${location.search}`);
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({data}) => typeof data === "string" ? hear(JSON.parse(data)) : show(data);
  socket.onclose = () => {
    lostAt ??= performance.now();
    sayState();
    setTimeout(connect, ended === null ? RETRY : RETRY_ENDED);
  };
}

function hear(message) {
  if ("curves" in message) showCurves(message.curves);
  else if ("watches" in message) showWords(message.watches);
  else if ("ended" in message) {
    ended = message.ended;
    if (last) figures(last.header);
  }
  else greet(message);
  sayState();
}

// One line on where the pictures are from, by what has happened last.
function sayState() {
  const quiet = shownAt === null ? 0 : Math.floor((performance.now() - shownAt) / 1000), now = $("state");
  const lost = lostAt === null ? 0 : Math.floor((performance.now() - lostAt) / 1000);
  const [kind, words] = ended !== null ? ["", `the run has ${ended}${last ? ": its last pictures" : ""}`]
    : lostAt !== null ? ["bad", hello ? `connection lost ${duration(lost)} ago, trying again` : "no connection, trying again"]
    : hello === null ? ["", "connecting"]
    : paused ? ["", hello.controls ? "paused" : "paused here: the training goes on"]
    : last === null ? ["", "connected"]
    : quiet >= QUIET ? ["", `no new picture for ${duration(quiet)}: the run evaluates or saves`]
    : ["live", "live"];
  now.className = kind;
  now.textContent = words;
  document.body.classList.toggle("over", ended !== null || lostAt !== null);
  document.querySelector("aside").hidden = last === null;
  $("empty").hidden = last !== null;
  $("empty").textContent = hello === null || ended !== null ? words : "The pictures begin with the run's next step: it prepares, or evaluates.";
}

function greet(message) {
  hello = message;
  ended = lostAt = last = whole = shownAt = null;
  returns = [];
  $("title").textContent = document.title = hello.title;
  const count = hello.envs.length, many = text(hello.num_envs, 0);
  const boys = count < hello.num_envs ? `${count} of ${many} Game Boys` : `${many} Game Boy${count > 1 ? "s" : ""}`;
  $("facts").textContent = [...Object.values(hello.facts), boys].join(" · ");
  layOut();
  setPaused(false);
  $("step").hidden = $("rate").hidden = !hello.controls;
  $("wall").hidden = true;
  $("map").hidden = true;
  document.body.classList.toggle("single", count === 1);
  $("curves").hidden = !hello.has_records;
  forgetMap();
  forgetCurves();
  greetRam(hello);
  $("pad").replaceChildren(...hello.actions.map((name) => make("span", {textContent: name})));
  $("speed").value = Math.log(hello.speed) / Math.log(240) * 100;
  showSpeed();
  figures({});
  choose(Math.min(chosen, count - 1));
}

// Columns and rows of the wall: as wide to high as there is room, with as few empty ones as that allows.
const room = () => ({width: $("all").clientWidth || 800, height: Math.max(260, 0.5 * innerHeight)});
const tiles = () => {
  const {width, height} = room(), count = hello.envs.length, ideal = Math.max(1, Math.sqrt(count * hello.rows / hello.columns * width / height));
  let best = [count, 1], least = Infinity;
  for (let columns = Math.max(1, Math.ceil(0.7 * ideal)); columns <= Math.ceil(1.3 * ideal); columns++) {
    const rows = Math.ceil(count / columns), worse = (columns * rows - count) / count + 0.3 * Math.abs(Math.log(columns / ideal));
    if (worse < least) [best, least] = [[columns, rows], worse];
  }
  return best;
};

function layOut() {
  const [across, down] = tiles(), canvas = $("wall"), {width, height} = room();
  canvas.width = across * (hello.columns + GAP) + GAP;
  canvas.height = down * (hello.rows + GAP) + GAP;
  const scale = Math.min(1.15 * height / canvas.height, 4, width / canvas.width);
  canvas.style.maxWidth = `${Math.round(scale * canvas.width)}px`;
  canvas.style.imageRendering = scale * devicePixelRatio >= 1 ? "pixelated" : "auto";  // smaller ones would lose lines
}

const colour = (rgb) => 0xff000000 | (rgb & 0x7c00) << 9 | (rgb & 0x3e0) << 6 | (rgb & 31) << 3;

// The pixels of encoded pictures, as an image has them.
function decoded(bytes, pixels, colors) {
  const found = new Uint32Array(pixels);
  if (colors) for (let i = 0; i < pixels; i++) found[i] = colour(bytes[2 * i] | bytes[2 * i + 1] << 8);
  else for (let i = 0; i < bytes.length; i++) for (let k = 0; k < 4; k++) found[4 * i + k] = COLOURS[bytes[i] >> (6 - 2 * k) & 3];
  return found;
}

function show(data) {
  if (!hello || (paused && !hello.controls)) return;
  const length = new DataView(data).getUint32(0, true), count = hello.envs.length, pixels = hello.rows * hello.columns * count;
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  let at = 4 + length;
  const take = (size) => new Uint8Array(data, (at += size) - size, size);
  const numbers = new Float32Array(take(12 * count).slice().buffer), ram = take(hello.ram ? header.watches.length : 0);
  const pictures = decoded(take(pixels * (header.colors ? 2 : 1 / 4)), pixels, header.colors), bytes = take(header.whole);
  if (header.whole) whole = {focus: header.focus, pixels: decoded(bytes, WHOLE.rows * WHOLE.columns, header.whole_colors)};
  if (hello.map) readMap(take(header.cells).slice().buffer, count);
  if (hello.controls) setPaused(header.paused);
  last = {header, numbers, ram, pictures, count};
  shownAt = performance.now();
  returns.push(numbers[2 * count + chosen]);
  if (returns.length > 320) returns.shift();
  $("wall").hidden = count === 1;
  $("map").hidden = !hello.map || !mapRows;
  draw();
  figures(header);
  sayState();
}

function draw() {
  if (!last) return drawRam(new Map());
  const {header, numbers, ram, pictures, count} = last;
  if (count > 1) drawWall(pictures, count);
  drawScreen(header, pictures);
  const action = numbers[chosen];
  [...$("pad").children].forEach((each, number) => each.classList.toggle("on", number === action));
  $("action").textContent = hello.actions[action] ?? action;
  $("reward").textContent = text(numbers[count + chosen], 3);
  $("return").textContent = text(numbers[2 * count + chosen], 3);
  drawReturns();
  if (hello.map) drawMap(chosen);
  drawRam(new Map(header.focus === chosen ? header.watches.map((column, i) => [column, ram[i]]) : []));
}

// The chosen Game Boy in whole, as its LCD shows it; until that is there, what the env draws of it.
function drawScreen(header, pictures) {
  const isWhole = whole !== null && whole.focus === chosen, {rows, columns} = isWhole ? WHOLE : hello;
  const canvas = $("screen"), size = hello.rows * hello.columns, context = canvas.getContext("2d");
  if (canvas.width !== columns || canvas.height !== rows) [canvas.width, canvas.height] = [columns, rows];
  const image = context.createImageData(columns, rows);
  new Uint32Array(image.data.buffer).set(isWhole ? whole.pixels : pictures.subarray(chosen * size, (chosen + 1) * size));
  context.putImageData(image, 0, 0);
  $("screen-note").textContent = isWhole ? "" : header.whole_error ? `only every second pixel: ${header.whole_error}`
    : hello.whole ? "every second pixel; the whole picture is being prepared" : rows < WHOLE.rows ? "as the env draws it" : "";
}

function drawWall(pictures, count) {
  const canvas = $("wall"), context = canvas.getContext("2d"), [across] = tiles();
  const image = context.createImageData(canvas.width, canvas.height), pixels = new Uint32Array(image.data.buffer);
  const {rows, columns} = hello, lit = 0xff000000 | LIT[2] << 16 | LIT[1] << 8 | LIT[0];
  for (let n = 0; n < count; n++) {
    const left = n % across * (columns + GAP) + GAP, top = Math.floor(n / across) * (rows + GAP) + GAP;
    for (let y = -GAP; y < rows + GAP && n === chosen; y++)
      pixels.fill(lit, (top + y) * canvas.width + left - GAP, (top + y) * canvas.width + left + columns + GAP);
    for (let y = 0; y < rows; y++) {
      const from = (n * rows + y) * columns;
      pixels.set(pictures.subarray(from, from + columns), (top + y) * canvas.width + left);
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

// The newest figures, and the losses.
function figures(header) {
  const has = (key) => key in header, boxes = [["steps", text(header.step, 0), has("total") ? `of ${text(header.total, 0)}` : ""]];
  if (!hello.controls) {
    boxes.push(["steps/s", text(header["charts/SPS"], 0), ""], ["elapsed", duration(header.elapsed), ""]);
    boxes.push(["left, at most", ended === null ? duration(header.left) : "–", ""]);
  }
  if (has("charts/success_rate") || has("eval/success_rate"))
    boxes.push(["success", text(header["charts/success_rate"], 2), has("eval/success_rate") ? `evaluated ${text(header["eval/success_rate"], 2)}` : ""]);
  boxes.push(["return", text(header["charts/episodic_return"], 2), ""], ["length", text(header["charts/episodic_length"], 1), ""]);
  $("figures").replaceChildren(...boxes.map(([name, value, note]) => {
    const box = make("div", {className: "figure"});
    box.append(make("span", {textContent: name}), make("b", {textContent: value}));
    if (note) box.append(make("small", {textContent: note}));
    return box;
  }));
  const losses = Object.keys(header).filter((key) => key.startsWith("losses/")).map((key) => [key.slice(7).replaceAll("_", " "), text(header[key], 4)]);
  if (!losses.length && !hello.controls) losses.push(["losses", "with the run's first record"]);
  $("losses").replaceChildren(...losses.map(([name, value]) => {
    const pair = make("div");
    pair.append(make("dt", {textContent: name}), make("dd", {textContent: value}));
    return pair;
  }));
}

function choose(number) {
  if (!hello || number < 0 || number >= hello.envs.length) return;
  chosen = number;
  returns = [];
  $("name").textContent = `Game Boy ${text(hello.envs[number], 0)}`;
  watch();
  draw();
}

function setPaused(value) {
  paused = value;
  $("pause").textContent = paused ? "Go on" : "Pause";
}

const speed = () => Math.round(240 ** ($("speed").value / 100) * 10) / 10;
const showSpeed = () => { $("speed-text").value = `${text(speed(), 1)} steps/s`; };
const togglePause = () => { setPaused(!paused); sayState(); if (hello?.controls) tell({paused}); };
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
document.onkeydown = (event) => {
  if (["INPUT", "BUTTON"].includes(event.target.tagName)) return;
  if (event.key === " ") { event.preventDefault(); togglePause(); }
  if (event.key === "." && hello?.controls) oneStep();
};
onresize = () => { if (hello) { layOut(); draw(); } };
setInterval(sayState, 1000);
connect();
