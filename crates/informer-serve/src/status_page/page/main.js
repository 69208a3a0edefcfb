// The status page of `kubectl informer serve`: its controls, and what begins when it is loaded.
//
// The other modules know nothing of this one. Each begins with what it is for:
// text ← state ← connection ← streams, discovery ← collections, list ← changes, objects ← detail
// ← main.

import {
  changes, changesView, closeChanges, forgetChanges, openChanges, setPaused,
} from './changes.js';
import { pollCollections } from './collections.js';
import { onProblem } from './connection.js';
import { closeDetail, isOpen, open, otherTab, showTab } from './detail.js';
import { focusList, onOpen, pick, redraw, remake, showView, toTop } from './list.js';
import { closeObjects, objectsView, openObjects, resizeObjects } from './objects.js';
import { filters, narrow, state } from './state.js';
import { by } from './text.js';

// Pause after the last letter before a filter is applied, in ms.
const TYPING = 350;
// Pause before an object that was passed with a key is read, in ms: a held key passes many.
const PASSING = 150;

const viewButtons = document.querySelectorAll('button[data-view]');

function show(view) {
  state.view = view;
  document.body.dataset.view = view;
  for (const it of viewButtons) it.setAttribute('aria-pressed', String(it.dataset.view === view));
  const isObjects = view === 'objects';
  by('head').hidden = !isObjects;
  by('pause').hidden = isObjects;
  by('noise').parentElement.hidden = isObjects;
  showView(isObjects ? objectsView : changesView);
  openShown();
  remember();
}

// Opens the stream of what is shown, and closes the other one: a browser has few connections.
function openShown() {
  if (state.view === 'objects') {
    closeChanges();
    openObjects();
  } else {
    closeObjects();
    openChanges();
  }
}

// Selects a kind in the table of collections; '' for all.
function choose(kind) {
  by('kind').value = kind;
  if (narrow.matches) show(state.view === 'collections' ? 'changes' : state.view);
  applyFilters();
}

let applying = null;
function applySoon() {
  clearTimeout(applying);
  applying = setTimeout(applyFilters, TYPING);
}
function applyFilters() {
  clearTimeout(applying);
  const keys = Object.keys(filters);
  const now = Object.fromEntries(keys.map((key) => [key, by(key).value.trim()]));
  if (keys.every((key) => now[key] === filters[key])) return;
  Object.assign(filters, now);
  // What was frozen does not fit any more.
  if (changes.isPaused) setPaused(false);
  forgetChanges();
  openShown();
  remember();
}
function applyText(text) {
  state.text = text;
  redraw(true);
}

// The address says what is shown, to pass it on.
function remember() {
  const query = new URLSearchParams();
  if (state.view === 'objects') query.set('view', 'objects');
  for (const [key, value] of Object.entries(filters)) if (value) query.set(key, value);
  const address = query.size ? `#${query}` : location.pathname + location.search;
  history.replaceState(null, '', address);
}
function recall() {
  const query = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(filters)) {
    filters[key] = query.get(key) || '';
    by(key).value = filters[key];
  }
  show(query.get('view') === 'objects' ? 'objects' : 'changes');
}

function move(step) {
  if (pick(step) && isOpen() && !narrow.matches) open(state.picked, PASSING);
}
function openPicked() {
  if (!state.picked) return;
  open(state.picked);
  by('detail-name').focus({ preventScroll: true });
}
const KEYS = {
  '/': () => { by('text').focus(); by('text').select(); },
  j: () => move(1),
  k: () => move(-1),
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  g: () => move(-Infinity),
  G: () => move(Infinity),
  Enter: openPicked,
  p: () => { if (state.view !== 'objects') setPaused(!changes.isPaused); },
  o: () => show(state.view === 'objects' ? 'changes' : 'objects'),
  n: () => by('noise').click(),
  y: () => { if (isOpen()) showTab(otherTab()); },
  '?': () => by('help').showModal(),
};

function escape(field) {
  if (field) {
    if (field.id === 'text') { field.value = ''; applyText(''); }
    focusList();
  } else if (isOpen()) closeDetail(true);
  else if (state.text) { by('text').value = ''; applyText(''); }
  else { state.picked = null; redraw(false); }
}

document.addEventListener('keydown', (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || by('help').open) return;
  const isTyping = target instanceof HTMLInputElement && target.type !== 'checkbox';
  if (key === 'Escape') {
    escape(isTyping ? target : null);
    event.preventDefault();
    return;
  }
  if (isTyping) {
    if (key === 'Enter') { event.preventDefault(); applyFilters(); focusList(); }
    return;
  }
  // Buttons, links and the panel have uses of their own for these.
  const isButton = target instanceof HTMLButtonElement;
  const isInPanel = by('detail').contains(target) && target !== by('detail-name');
  if (key.startsWith('Arrow') && (isInPanel || isButton)) return;
  if (key === 'Enter' && (isButton || isInPanel || target instanceof HTMLAnchorElement)) return;
  if (Object.hasOwn(KEYS, key)) { event.preventDefault(); KEYS[key](); }
});

// The part of the address after the # says what is shown: the link leaves it as it is.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  focusList();
});
by('filters').addEventListener('submit', (event) => event.preventDefault());
for (const id of Object.keys(filters)) {
  by(id).addEventListener('input', applySoon);
  by(id).addEventListener('change', applyFilters);
}
by('text').addEventListener('input', () => { toTop(); applyText(by('text').value.trim()); });
by('noise').addEventListener('change', () => {
  state.noise = by('noise').checked;
  redraw(true);
});
by('pause').addEventListener('click', () => setPaused(!changes.isPaused));
by('help-button').addEventListener('click', () => by('help').showModal());
by('detail-close').addEventListener('click', () => closeDetail(true));
for (const name of ['history', 'yaml']) {
  const tab = by(`tab-${name}`);
  tab.addEventListener('click', () => showTab(name));
  tab.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    const other = otherTab();
    showTab(other);
    by(`tab-${other}`).focus();
  });
}
for (const it of viewButtons) it.addEventListener('click', () => show(it.dataset.view));

const hint = () => { by('text').placeholder = narrow.matches ? 'any' : 'press /'; };
hint();
narrow.addEventListener('change', () => {
  hint();
  resizeObjects();
  if (!narrow.matches && state.view === 'collections') show('changes');
  remake();
  redraw(true);
});

onOpen(open);
onProblem(() => redraw(false));
recall();
pollCollections(choose);
