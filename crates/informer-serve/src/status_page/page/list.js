// The list of changes or objects, of which only the rows that are seen exist.
//
// A view is what it shows: `label`, `rows()` with all entries as rows and how many entries they
// are, `empty()` with a title and a text, and `keepsPlace`, whether entries stay where they are seen
// as others come before them. A row is `{ key, of, at, made, make() }`: the entry it is of, its
// place among the entries unless it only adds to one, and what makes its element. It is made again
// when `made` is another one.

import { state } from './state.js';
import { by, el, fillWith, plain } from './text.js';

// Height of a row in px, as the style has it.
const HEIGHT = 26;
// Rows above and below those that are seen, so that scrolling finds them.
const OVERSCAN = 12;
// Rows from the bottom that a picked one keeps.
const MARGIN = 3;

const list = by('list');
const elements = new Map();
let view = null;
let flat = [];
let count = 0;
let drawing = null;
let isStale = false;
let opens = () => {};

// Calls back with an entry that is opened by a click.
export const onOpen = (callback) => { opens = callback; };

// Shows a view from its top.
export function showView(next) {
  view = next;
  list.setAttribute('aria-label', view.label);
  state.picked = null;
  elements.clear();
  list.scrollTop = 0;
  redraw(true);
}
// Draws with the next frame, once however often it is called; `rebuild`, if the rows are others.
export function redraw(rebuild) {
  if (rebuild) isStale = true;
  if (drawing === null) drawing = requestAnimationFrame(() => { drawing = null; draw(); });
}
// Makes all elements again.
export function remake() {
  elements.clear();
  redraw(false);
}
export const toTop = () => { list.scrollTop = 0; };
export const focusList = () => list.focus({ preventScroll: true });

// Picks the entry so many steps further; infinity is the last one. Whether there is one.
export function pick(step) {
  const entries = flat.filter((it) => it.at !== undefined);
  if (!entries.length) return false;
  const at = entries.findIndex((it) => it.of === state.picked);
  const last = entries.length - 1;
  let to = Math.min(Math.max(at + step, 0), last);
  if (at < 0 && Number.isFinite(step)) to = 0;
  state.picked = entries[to].of;
  const top = flat.indexOf(entries[to]) * HEIGHT;
  const bottom = top + MARGIN * HEIGHT;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
  redraw(false);
  return true;
}

list.addEventListener('scroll', () => redraw(false), { passive: true });
list.addEventListener('click', (event) => {
  const row = event.target.closest('.row');
  if (row) opens(row.of);
});
new ResizeObserver(() => redraw(false)).observe(list);

function draw() {
  if (!view) return;
  if (isStale) rebuild();
  const top = list.scrollTop;
  const from = Math.max(0, Math.floor(top / HEIGHT) - OVERSCAN);
  const to = Math.min(flat.length, Math.ceil((top + list.clientHeight) / HEIGHT) + OVERSCAN);
  const seen = flat.slice(from, to);
  const wanted = seen.map(elementOf);
  const keys = new Set(seen.map((it) => it.key));
  for (const key of elements.keys()) if (!keys.has(key)) elements.delete(key);
  fillWith(by('window'), wanted);
  by('window').style.transform = `translateY(${from * HEIGHT}px)`;
  const picked = state.picked && elements.get(state.picked.key);
  if (picked) list.setAttribute('aria-activedescendant', picked.id);
  else list.removeAttribute('aria-activedescendant');
  sayEmpty();
}

function rebuild() {
  isStale = false;
  const top = list.scrollTop;
  const anchor = view.keepsPlace && top > 0 ? flat[Math.floor(top / HEIGHT)] : null;
  const { rows, entries } = view.rows();
  flat = rows;
  count = entries;
  by('space').style.height = `${flat.length * HEIGHT}px`;
  if (!anchor) return;
  const at = flat.findIndex((it) => it.key === anchor.key);
  if (at >= 0) list.scrollTop = at * HEIGHT + (top % HEIGHT);
}

function elementOf(row) {
  let node = elements.get(row.key);
  if (!node || node.made !== row.made) {
    node = row.make();
    node.made = row.made;
    elements.set(row.key, node);
  }
  node.of = row.of;
  const isPicked = row.of === state.picked;
  node.classList.toggle('picked', isPicked);
  if (node.getAttribute('role') === 'option') {
    node.setAttribute('aria-selected', String(isPicked));
    node.setAttribute('aria-posinset', row.at + 1);
    node.setAttribute('aria-setsize', count);
  }
  return node;
}

function sayEmpty() {
  const node = by('empty');
  node.hidden = flat.length > 0;
  if (flat.length > 0) return;
  const [title, text] = view.empty();
  const key = title + text;
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  node.replaceChildren(el('strong', { text: title }), document.createTextNode(plain(text)));
}
