"use strict";
// The RAM box. The page sends the words; the server answers with where each is, or why it is not understood; pictures bring
// the bytes of the columns that were found.
const TYPING = 250;  // milliseconds without a key after which the words are sent
let foundWords = [], typing = null;

const typedWords = () => document.getElementById("words").value.split(/[\s,;]+/).filter((word) => word);

function watch() {
  tell({focus: chosen, watches: typedWords()});
}

function greetRam(hello) {
  document.getElementById("ram").hidden = !hello.ram;
  const addresses = "addresses such as C100 or 1:A000", count = text(hello.symbols, 0);
  const names = hello.symbols ? `one of ${count} symbols, NAME+4, or ${addresses}` : `${addresses}; names with --symbols FILE`;
  document.getElementById("words-note").textContent = names;
}

function showWords(words) {
  foundWords = words;
  draw();
}

// A row a word: its value in decimal and hexadecimal; values by columns.
function drawRam(values) {
  const cell = (content, className) => make("td", {textContent: content, className});
  document.getElementById("watches").replaceChildren(...foundWords.map(({word, where, column, ones, error}) => {
    const row = make("tr");
    if (error !== undefined) {
      row.append(make("td", {textContent: error, className: "error", colSpan: 4}));
      return row;
    }
    const value = values.has(column) ? values.get(column) | ones : null;
    row.append(cell(word, ""), cell(where === word.toUpperCase() ? "" : where, "where"), cell(value ?? "…", "number"));
    row.append(cell(value === null ? "" : value.toString(16).padStart(2, "0").toUpperCase(), "number"));
    return row;
  }));
}

document.getElementById("words").oninput = () => { clearTimeout(typing); typing = setTimeout(watch, TYPING); };
document.getElementById("ram").onsubmit = (event) => { event.preventDefault(); watch(); };
