"use strict";
// The map. Its bytes are int32: the cells of the Game Boys on the wall, then, not in each picture, rows of a cell, the Game
// Boys that are there now, and its visits. A cell is map << 16 | row << 8 | column.
const MOST_MAPS = 24, LARGEST = 16;  // maps shown, those with the most visits; pixels of a cell
const HERE = [0xff, 0xf3, 0xb0], BEEN = [[0x22, 0x33, 0x26], [0x4f, 0x8a, 0x5b]], CHOSEN = "#ff7a59";
let shownCells = null, mapRows = null, mapFigures = new Map();

function forgetMap() {
  shownCells = mapRows = null;
  mapFigures = new Map();
  document.getElementById("maps").replaceChildren();
}

function readMap(bytes, count) {
  const numbers = new Int32Array(bytes);
  shownCells = numbers.slice(0, count);
  if (numbers.length > count) {
    mapRows = numbers.slice(count);
    groupMaps();
  }
}

// The maps as the cells tell them, each with the rectangle that was seen of it.
function groupMaps() {
  const maps = new Map();
  for (let i = 0; i < mapRows.length; i += 3) {
    const [cell, here, visits] = mapRows.subarray(i, i + 3), number = cell >> 16, row = cell >> 8 & 255, column = cell & 255;
    if (!maps.has(number)) maps.set(number, {number, cells: [], here: 0, visits: 0, most: 0, top: 255, left: 255, bottom: 0, right: 0});
    const map = maps.get(number);
    map.cells.push([row, column, here, visits]);
    map.here += here;
    map.visits += visits;
    map.most = Math.max(map.most, visits);
    [map.top, map.bottom] = [Math.min(map.top, row), Math.max(map.bottom, row)];
    [map.left, map.right] = [Math.min(map.left, column), Math.max(map.right, column)];
  }
  const shown = [...maps.values()].sort((a, b) => b.visits - a.visits).slice(0, MOST_MAPS).sort((a, b) => a.number - b.number);
  for (const map of shown) if (!mapFigures.has(map.number)) {
    const figure = document.createElement("figure"), canvas = document.createElement("canvas"), text = document.createElement("figcaption");
    figure.append(canvas, text);
    mapFigures.set(map.number, {figure, canvas, text});
  }
  for (const map of shown) Object.assign(mapFigures.get(map.number), {map});
  const figures = shown.map((map) => mapFigures.get(map.number).figure), box = document.getElementById("maps");
  if (figures.length !== box.children.length || figures.some((figure, i) => figure !== box.children[i])) box.replaceChildren(...figures);
}

function drawMap(chosen) {
  if (!mapRows) return;
  for (const {figure, canvas, text, map} of mapFigures.values()) {
    if (!figure.isConnected) continue;
    const down = map.bottom - map.top + 1, across = map.right - map.left + 1;
    const size = Math.max(3, Math.min(LARGEST, Math.floor(420 / Math.max(down, across))));
    canvas.width = across * size;
    canvas.height = down * size;
    const context = canvas.getContext("2d");
    const fill = (row, column, style, margin) => {
      context.fillStyle = style;
      context.fillRect((column - map.left) * size + margin, (row - map.top) * size + margin, size - 2 * margin, size - 2 * margin);
    };
    for (const [row, column, here, visits] of map.cells) {
      const share = Math.log1p(visits) / Math.log1p(map.most);
      fill(row, column, `rgb(${BEEN[0].map((low, k) => low + (BEEN[1][k] - low) * share)})`, 0);
      if (here) fill(row, column, `rgb(${HERE})`, Math.max(0, Math.floor(size / 3) - Math.floor(Math.log2(here) / 2)));
    }
    const own = shownCells[chosen];
    if (own >> 16 === map.number) fill(own >> 8 & 255, own & 255, CHOSEN, size > 6 ? 2 : 0);
    text.textContent = `map ${map.number}: ${map.here.toLocaleString("en")} here, ${map.cells.length.toLocaleString("en")} cells seen`;
  }
}
