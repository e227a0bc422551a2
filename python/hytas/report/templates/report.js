"use strict";
// Every figure is on the page without this script; it lets a reader ask what lies under the pointer.

const BLOBS = JSON.parse(document.getElementById("blobs").textContent);
const NAMES = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };

/** The bytes of a value that the page holds as base64 of a zlib stream. */
async function bytes(name) {
  const packed = Uint8Array.from(atob(BLOBS[name]), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

async function array(name, kind) {
  return new NAMES[kind](await bytes(name));
}

/** Fill an element with texts, some of them in bold; nothing is ever read as HTML. */
function say(element, parts) {
  element.replaceChildren();
  for (const [text, bold] of parts) {
    const child = document.createElement(bold ? "strong" : "span");
    const own = document.createElement("bdi");
    own.textContent = text;
    child.append(own);
    element.append(child, " ");
  }
}

/** Move a place by an arrow key; false if the key is another one. */
function moved(event, place) {
  const step = event.shiftKey ? 10 : 1;
  const steps = { ArrowLeft: [0, -step], ArrowRight: [0, step], ArrowUp: [-step, 0], ArrowDown: [step, 0] };
  if (!steps[event.key] || event.ctrlKey || event.altKey || event.metaKey) return false;
  event.preventDefault();
  place[0] += steps[event.key][0];
  place[1] += steps[event.key][1];
  return true;
}

class ClassMap {
  constructor(article, data) {
    this.article = article;
    this.data = data.pixels;
    this.names = data.classes;
    [this.height, this.width] = this.data.size;
    this.maps = article.querySelector(".maps");
    this.out = article.querySelector(".tell .readout");
    this.cross = article.querySelector(".cross");
    this.mask = article.querySelector(".mask");
    this.chart = article.querySelector(".spectra");
    this.buttons = [...article.querySelectorAll(".legend button")];
    this.place = null;
    this.chosen = 0;
  }

  async load() {
    const planes = this.data.planes;
    this.predicted = await array(planes.predicted, "uint16");
    this.truth = await array(planes.truth, "uint16");
    this.confidence = await array(planes.confidence, "uint8");
    this.roles = await array(planes.roles, "uint8");
    const spectra = this.data.spectra;
    if (spectra) {
      this.codes = await array(spectra.codes, "uint8");
      for (const name of ["low", "step", "basis", "centre"]) this[name] = await array(spectra[name], "float32");
    }
  }

  listen() {
    const slider = this.article.querySelector(".slider input");
    const cut = () => {
      this.maps.style.setProperty("--cut", `${slider.value}%`);
      this.paint();
    };
    slider.addEventListener("input", cut);
    for (const select of this.article.querySelectorAll(".choice select")) {
      select.addEventListener("change", () => this.layers());
    }
    this.layers();
    cut();
    this.article.querySelector(".handle").hidden = false;
    const area = this.article.querySelector(".plane.predicted .frame");
    const point = (event) => {
      const box = area.getBoundingClientRect();
      const row = Math.floor(((event.clientY - box.top) / box.height) * this.height);
      const column = Math.floor(((event.clientX - box.left) / box.width) * this.width);
      if (row >= 0 && column >= 0 && row < this.height && column < this.width) this.show([row, column]);
    };
    this.maps.addEventListener("pointermove", (event) => point(event));
    this.maps.addEventListener("pointerdown", (event) => point(event));
    this.maps.tabIndex = 0;
    this.maps.setAttribute("role", "application");
    this.maps.addEventListener("keydown", (event) => {
      const place = this.place || [this.height >> 1, this.width >> 1];
      const next = [...place];
      if (moved(event, next)) {
        next[0] = Math.min(Math.max(next[0], 0), this.height - 1);
        next[1] = Math.min(Math.max(next[1], 0), this.width - 1);
        this.show(next);
      }
    });
    for (const button of this.buttons) {
      button.disabled = false;
      button.addEventListener("click", () => this.choose(Number(button.dataset.number)));
    }
  }

  /** Show the two chosen layers, left and right of the slider. */
  layers() {
    for (const select of this.article.querySelectorAll(".choice select")) {
      for (const plane of this.article.querySelectorAll(".plane")) {
        plane.classList.toggle(select.dataset.side, plane.dataset.layer === select.value);
      }
      this[select.dataset.side] = select.value;
    }
    this.paint();
  }

  /** Tell all about a pixel. */
  show(place) {
    this.place = place;
    const [row, column] = place;
    const at = row * this.width + column;
    const predicted = this.predicted[at];
    const truth = this.truth[at];
    const stride = this.data.stride;
    const where = `row ${row * stride}, column ${column * stride}:`;
    const parts = [[where, false]];
    if (predicted) {
      const sure = (this.confidence[at] / 255).toFixed(2);
      parts.push([this.names[predicted - 1], true], [`with confidence ${sure};`, false]);
    } else parts.push(["no data;", false]);
    if (truth) {
      const right = predicted ? (truth === predicted ? "✓ right, " : "✗ wrong, ") : "";
      parts.push([`${right}the truth is`, false], [this.names[truth - 1], true]);
    }
    if (truth) parts.push([`(${ROLES[this.roles[at]]}).`, false]);
    else parts.push(["no truth is known here.", false]);
    say(this.out, parts);
    this.cross.hidden = false;
    const area = this.article.querySelector(".plane.predicted .frame");
    this.cross.style.left = `${((column + 0.5) / this.width) * area.clientWidth}px`;
    this.cross.style.top = `${((row + 0.5) / this.height) * area.clientHeight}px`;
    if (this.chart) this.draw(row * stride, column * stride, predicted, truth);
  }

  /** Draw the pixel's spectrum with the means of its class and of its true class. */
  draw(row, column, predicted, truth) {
    const spectra = this.data.spectra;
    const [count, height, width] = spectra.size;
    const at = Math.floor(row / spectra.stride) * width + Math.floor(column / spectra.stride);
    const length = this.centre.length;
    const values = Float64Array.from(this.centre);
    for (let k = 0; k < count; k++) {
      const score = this.low[k] + this.step[k] * this.codes[k * height * width + at];
      for (let b = 0; b < length; b++) values[b] += score * this.basis[k * length + b];
    }
    const [low, high, start, end] = spectra.up;
    const y = (value) => start + ((value - low) / (high - low)) * (end - start);
    const path = Array.from(values, (value, b) => `${b ? "L" : "M"}${spectra.xs[b]} ${y(value).toFixed(1)}`);
    this.chart.classList.toggle("chosen", predicted > 0);
    this.chart.querySelector(".pixel").setAttribute("d", predicted ? path.join("") : "");
    const means = this.chart.querySelectorAll(".mean path");
    for (const [name, number] of [["predicted", predicted], ["true", truth === predicted ? 0 : truth]]) {
      const line = this.chart.querySelector(`.${name}`);
      const mean = number ? means[number - 1] : null;
      line.setAttribute("d", mean ? mean.getAttribute("d") : "");
      if (mean) line.style.stroke = mean.style.stroke;
    }
  }

  /** Show one class alone, or all again. */
  choose(number) {
    this.chosen = this.chosen === number ? 0 : number;
    for (const button of this.buttons) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.number) === this.chosen));
    }
    this.paint();
  }

  /** Cover all pixels of other classes: by the truth where a side shows it, else by the map. */
  paint() {
    const slider = this.article.querySelector(".slider input");
    this.mask.hidden = !this.chosen;
    if (!this.chosen) return;
    this.mask.width = this.width;
    this.mask.height = this.height;
    const image = new ImageData(this.width, this.height);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const edge = (Number(slider.value) / 100) * this.width;
    for (let at = 0; at < this.predicted.length; at++) {
      const side = at % this.width < edge ? this.left : this.right;
      const plane = side === "truth" ? this.truth : this.predicted;
      if (plane[at] === this.chosen) continue;
      image.data.fill(dark ? 20 : 255, 4 * at, 4 * at + 3);
      image.data[4 * at + 3] = 225;
    }
    this.mask.getContext("2d").putImageData(image, 0, 0);
  }
}

/** The candidates of a search: charts that tell of the one nearest to the pointer. */
class Points {
  constructor(article, data) {
    this.data = data;
    this.out = article.querySelector(".points-out");
    this.panels = [...article.querySelectorAll(".panel")].map((svg) => {
      const spots = [...svg.querySelector(".points path").getAttribute("d").matchAll(/M(\S+) (\S+)h0/g)];
      const places = svg.dataset.places ? svg.dataset.places.split(",").map(Number) : spots.map((_, at) => at);
      const points = spots.map((spot, at) => ({ x: Number(spot[1]), y: Number(spot[2]), place: places[at] }));
      return { svg, cursor: svg.querySelector(".cursor"), points };
    });
  }

  async load() {
    this.columns = JSON.parse(new TextDecoder().decode(await bytes(this.data.columns)));
  }

  listen() {
    for (const panel of this.panels) {
      const near = (event) => {
        const box = panel.svg.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * 440;
        const y = ((event.clientY - box.top) / box.height) * 300;
        let best = null;
        let least = 400; // squared: twenty units away at most
        for (const point of panel.points) {
          const far = (point.x - x) ** 2 + (point.y - y) ** 2;
          if (far < least) [best, least] = [point, far];
        }
        if (best) this.show(best.place);
      };
      panel.svg.addEventListener("pointermove", near);
      panel.svg.addEventListener("pointerdown", near);
      panel.svg.tabIndex = 0;
      const order = [...panel.points].sort((one, other) => one.x - other.x || one.y - other.y);
      panel.svg.addEventListener("keydown", (event) => {
        const place = [0, order.findIndex((point) => point.place === this.place)];
        if (!order.length || !moved(event, place)) return;
        const next = Math.min(Math.max(place[1] + place[0], 0), order.length - 1);
        this.show(order[next].place);
      });
    }
  }

  /** Tell all about a candidate, and mark it in every chart. */
  show(place) {
    this.place = place;
    for (const panel of this.panels) {
      const point = panel.points.find((one) => one.place === place) || { x: -20, y: -20 };
      panel.cursor.setAttribute("cx", point.x);
      panel.cursor.setAttribute("cy", point.y);
    }
    const { id, generation, genes, costs, scores } = this.columns;
    const parts = [[`candidate ${id[place]}`, true], [`of generation ${generation[place]}:`, false]];
    for (const [name, values] of Object.entries(costs)) {
      parts.push([`${name} ${values[place].toLocaleString("en")},`, false]);
    }
    for (const [name, values] of Object.entries(scores)) {
      parts.push([`${name} ${values[place] === null ? "failed" : values[place]};`, false]);
    }
    const texts = Object.entries(genes).map(([name, gene]) => `${name} ${gene.texts[gene.of[place]]}`);
    parts.push([texts.join(", "), false]);
    say(this.out, parts);
  }
}

const ROLES = ["not labelled", "a training pixel", "a validation pixel", "a test pixel", "labelled"];

async function start() {
  for (const article of document.querySelectorAll("article")) {
    const data = JSON.parse(article.querySelector("script.data").textContent);
    const parts = [];
    if (data.pixels) parts.push(new ClassMap(article, data));
    if (data.points && data.points.count) parts.push(new Points(article, data.points));
    for (const part of parts) await part.load();
    document.documentElement.classList.add("on");
    for (const part of parts) part.listen();
  }
  document.documentElement.dataset.ready = "yes";
}

// An old browser cannot unpack the values: the page then stays as it is without a script.
if ("DecompressionStream" in window) start();
