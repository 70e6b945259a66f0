"use strict";
// The memory pane. The page sends {ram}, a command as `puffer play` takes them in a terminal, and {pause} while a field is
// typed into; the server sends {ram: {watches, matches, left, conditions, message, failed, answered, target}}.
const READINGS = {
  u8: "1 byte", s8: "1 byte, signed", u16: "2 bytes, low first", u16be: "2 bytes, high first", s16: "2 bytes, low first, signed",
  s16be: "2 bytes, high first, signed", u24: "3 bytes, low first", u24be: "3 bytes, high first", u32: "4 bytes, low first", u32be: "4 bytes, high first",
};
let ram = {watches: [], matches: []}, editing = null, answered = 0;

const command = (text) => tell({ram: text});
const place = ({where, reading}) => ({name: where, reading});
const make = (tag, fields, ...children) => { const element = Object.assign(document.createElement(tag), fields); element.append(...children); return element; };

// u16be -> 2 bytes, high first; bcd3le -> BCD, 3 bytes, low first; digits6-F6 -> 6 digits, 0 is F6.
function meaning(word) {
  if (READINGS[word]) return READINGS[word];
  const [, kind, size, low, zero] = /^(bcd|digits|bits)(\d+)(le)?(?:-(..))?$/.exec(word) ?? [];
  if (!kind) return word;
  const text = kind === "bcd" ? `BCD, ${size} byte${size > 1 ? "s" : ""}` : kind === "digits" ? `${size} digits, one a byte` : `${size} bytes, set bits`;
  return text + (low ? ", low first" : "") + (zero ? `, 0 is ${zero}` : "");
}

function greetRam({names, readings}) {
  $("names").replaceChildren(...names.map((value) => make("option", {value})));
  $("reading").replaceChildren(make("option", {value: "", textContent: "any number"}), ...readings.map((word) => make("option", {value: word, textContent: `${meaning(word)}  (${word})`})));
}

// Rows keep their elements while the same numbers are listed: values change under a pointer, buttons do not.
function fill(table, rows, key, build, update) {
  const old = new Map([...table.rows].map((row) => [row.dataset.key, row]));
  const fresh = rows.map((each) => {
    const row = old.get(key(each)) ?? build(each);
    row.dataset.key = key(each);
    update(row, each);
    return row;
  });
  table.hidden = !rows.length;
  if (fresh.length !== table.rows.length || fresh.some((row, i) => row !== table.rows[i])) table.tBodies[0]?.remove(), table.append(make("tbody", {}, ...fresh));
}

const button = (text, title, onclick, className = "") => make("button", {type: "button", textContent: text, title, ariaLabel: title, onclick, className});

function cells(...contents) {
  return make("tr", {}, ...contents.map((content) => make("td", {}, content)));
}

// A field in place of a row's cells: Enter sends what it says, Escape and leaving it do not.
function ask(row, what, value, send) {
  const label = `${what[0].toUpperCase()}${what.slice(1)}`;
  const input = make("input", {value, ariaLabel: label, maxLength: 60, autocomplete: "off", spellcheck: false, autocapitalize: "off"});
  const form = make("form", {className: "ask"}, make("small", {textContent: label}), input), over = make("td", {colSpan: 4}, form), cells = [...row.children];
  const close = () => { if (editing === close) { editing = null; row.replaceChildren(...cells); } };
  form.onsubmit = (event) => { event.preventDefault(); const text = input.value.trim(); close(); if (text) send(text); };
  input.onkeydown = ({key}) => { if (key === "Escape") close(); };
  input.onblur = close;
  editing?.();
  editing = close;
  row.replaceChildren(over);
  input.focus();
  input.select();
}

const short = (value) => value.toLocaleString("en");

function watchRow({name}) {
  const now = () => ram.watches.find((each) => each.name === name) ?? {};
  const row = cells(
    make("span", {className: "name", textContent: name}),
    button("", `write ${name}`, () => ask(row, `value of ${name}`, now().value, (text) => command(`poke ${name} ${text}`)), "value"),
    button("❄", `freeze ${name}`, () => command(`${now().frozen ? "thaw" : "freeze"} ${name}`), "freeze"),
    make("span", {className: "last"},
      button("✎", `name ${name}`, () => ask(row, `name of ${now().where}`, now().name === now().where ? "" : name, (text) => command(`name ${name} ${text}`))),
      button("✕", `show ${name} no more`, () => command(`unwatch ${name}`))),
  );
  return row;
}

function matchRow({where, reading}) {
  const now = () => ram.matches.find((each) => each.where === where && each.reading === reading) ?? {};
  const row = cells(
    make("span", {className: "name", title: meaning(reading)}, `${where} `, make("small", {textContent: reading})),
    button("", `write ${where}`, () => ask(row, `value of ${where}`, now().value, (text) => command(`poke ${where} ${text} ${reading}`)), "value"),
    button("❄", `freeze ${where}`, () => command(`freeze ${where} ${now().value} ${reading}`), "freeze"),
    make("span", {className: "last"},
      button("✎", `name ${where}`, () => ask(row, `name of ${where}`, now().name, (text) => command(`name ${where} ${text} ${reading}`))),
      button("+", `show ${where} above`, () => command(`watch ${where} ${reading}`))),
  );
  return row;
}

function showRam(state) {
  ram = state;
  fill($("watches"), state.watches, ({name, where, reading}) => `${name} ${where} ${reading}`, watchRow, (row, each) => {
    const value = row.querySelector(".value"), freeze = row.querySelector(".freeze"), name = row.querySelector(".name");
    if (!value) return;
    value.textContent = short(each.value);
    name.title = `${each.where}, ${meaning(each.reading)}`;
    freeze.classList.toggle("on", each.frozen);
    freeze.title = freeze.ariaLabel = each.frozen ? `leave ${each.name} to the game` : `freeze ${each.name}`;
  });
  fill($("matches"), state.matches, ({where, reading, name}) => `${where} ${reading} ${name}`, matchRow, (row, each) => {
    const value = row.querySelector(".value");
    if (!value) return;
    value.textContent = short(each.value);
    row.classList.toggle("moved", each.value !== each.last);
    value.title = `write ${each.where}; at the last look ${short(each.last)}, at first ${short(each.first)}`;
    if (each.name) row.querySelector("small").textContent = each.name;
  });
  $("left").hidden = state.left === null;
  $("count").textContent = state.left === null ? "" : `${short(state.left)} left`;
  $("conditions").textContent = state.conditions.length ? `after ${state.conditions.join(", ")}` : "say what the number is, or play on and say what it did";
  $("back").disabled = !state.conditions.length;
  $("answer").hidden = !state.message || (!state.failed && state.left !== null && / left$|^a new search/.test(state.message));
  $("answer").textContent = state.message;
  $("answer").classList.toggle("error", state.failed);
  if (state.answered !== answered && !state.failed && document.activeElement?.closest("#add, #narrow")) document.activeElement.value = "", document.activeElement.blur();
  answered = state.answered;
}

$("narrow").onsubmit = (event) => { event.preventDefault(); if ($("condition").value.trim()) command($("condition").value); };
$("add").onsubmit = (event) => { event.preventDefault(); if ($("where").value.trim()) command(`watch ${$("where").value}`); };
$("begin").onclick = () => command(`search ${$("reading").value}`);
for (const each of document.querySelectorAll("[data-ram]")) each.onclick = () => command(each.dataset.ram);
// A pointer gives the keys back to the game; from the keyboard, a button stays where it is.
$("ram").addEventListener("click", ({target, detail}) => { if (detail && target.closest("button")) target.closest("button").blur(); });
$("ram").addEventListener("focusin", ({target}) => { if (target.matches("input, select")) { releaseAll(); tell({pause: true}); } });
$("ram").addEventListener("focusout", ({target}) => { if (target.matches("input, select")) tell({pause: false}); });
$("ram").addEventListener("keydown", ({key, target}) => { if (key === "Escape") target.blur(); });
