"use strict";
// Curves of the run since its start: `points` has the steps and values of each tag. What is measured in training and in
// evaluations shares a plot.
const PLOTS = [
  ["success", "charts/success_rate", "eval/success_rate"], ["return", "charts/episodic_return"], ["length", "charts/episodic_length"],
  ["distance to the goal, median", "env/dist_p50"],
];
const SVG = "http://www.w3.org/2000/svg", WIDTH = 300, HEIGHT = 70, MARGIN = 4;
const LEFT = 48;  // pixels beside the curve, for the labels
const plots = new Map();

const short = (steps) => steps.toLocaleString("en", {notation: "compact", maximumSignificantDigits: 3});
const decimals = (value) => value.toLocaleString("en", {maximumSignificantDigits: 3});

function showCurves(points) {
  const shown = PLOTS.map(([name, ...tags]) => [name, tags.filter((tag) => points[tag]?.steps.length)]).filter(([, tags]) => tags.length);
  const used = new Set(PLOTS.flatMap(([, ...tags]) => tags));
  const others = new Set(Object.keys(points).filter((tag) => !used.has(tag)).map((tag) => tag.replace(/^(env|eval)\//, "")));
  for (const name of others) shown.push([name, [`env/${name}`, `eval/${name}`].filter((tag) => points[tag]?.steps.length)]);
  document.getElementById("no-curves").hidden = shown.length > 0;
  for (const [name, tags] of shown) {
    if (!plots.has(name)) plots.set(name, newPlot(name));
    drawPlot(plots.get(name), tags.map((tag) => ({tag, ...points[tag]})));
  }
  for (const name of plots.keys()) if (!shown.some(([other]) => other === name)) plots.delete(name);
  document.getElementById("plots").replaceChildren(...shown.map(([name]) => plots.get(name).figure));
}

function forgetCurves() {
  plots.clear();
  document.getElementById("plots").replaceChildren();
  document.getElementById("no-curves").hidden = false;
}

const make = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);

function newPlot(name) {
  const plot = {figure: make("figure", {className: "plot"}), value: make("b"), first: make("span"), last: make("span")};
  Object.assign(plot, {high: make("span", {className: "high"}), low: make("span", {className: "low"})});
  plot.svg = document.createElementNS(SVG, "svg");
  plot.svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  plot.svg.setAttribute("preserveAspectRatio", "none");
  plot.svg.setAttribute("role", "img");
  plot.svg.setAttribute("aria-label", `${name} against steps`);
  plot.svg.onpointermove = (event) => { plot.at = (event.offsetX - LEFT) / (plot.svg.clientWidth - LEFT); tellValue(plot); };
  plot.svg.onpointerleave = () => { plot.at = null; tellValue(plot); };
  const caption = make("figcaption"), graph = make("div", {className: "graph"}), axis = make("div", {className: "axis"});
  caption.append(make("span", {textContent: name}), plot.value);
  graph.append(plot.svg, plot.high, plot.low);
  axis.append(plot.first, plot.last);
  plot.figure.append(caption, graph, axis);
  return plot;
}

function drawPlot(plot, curves) {
  const steps = curves.flatMap((curve) => curve.steps), values = curves.flatMap((curve) => curve.values);
  const [from, to] = [Math.min(...steps), Math.max(...steps)], [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (step) => to > from ? (step - from) / (to - from) * WIDTH : WIDTH / 2;
  const y = (value) => high > low ? HEIGHT - MARGIN - (value - low) / (high - low) * (HEIGHT - 2 * MARGIN) : HEIGHT / 2;
  Object.assign(plot, {curves, from, to});
  const lines = curves.map((curve, number) => {
    const line = document.createElementNS(SVG, "polyline"), points = curve.steps.map((step, i) => [x(step), y(curve.values[i])]);
    if (points.length === 1) points.push([points[0][0] + 4, points[0][1]]);  // else it could not be seen
    line.setAttribute("points", points.map((point) => point.map((part) => part.toFixed(1)).join(",")).join(" "));
    if (number) line.setAttribute("class", "second");
    return line;
  });
  plot.svg.replaceChildren(...lines);
  plot.first.textContent = short(from);
  plot.last.textContent = to > from ? `${short(to)} steps` : "steps";
  [plot.high.textContent, plot.low.textContent] = high > low ? [decimals(high), decimals(low)] : ["", ""];
  tellValue(plot);
}

// The newest values, or those where the pointer is.
function tellValue(plot) {
  const parts = plot.curves.map(({tag, steps, values}, number) => {
    const step = plot.at == null ? Infinity : plot.from + plot.at * (plot.to - plot.from);
    let best = steps.length - 1;
    if (step < Infinity) steps.forEach((other, i) => { if (Math.abs(other - step) < Math.abs(steps[best] - step)) best = i; });
    const part = make("span", {textContent: decimals(values[best]), className: number ? "second-name" : ""});
    if (tag.startsWith("eval/")) part.textContent = ` evaluated ${part.textContent}`;
    if (!number && step < Infinity) part.textContent = `at ${short(steps[best])}: ${part.textContent}`;
    return part;
  });
  plot.value.replaceChildren(...parts);
}
