// The panel of one object: its last changes, and its YAML.
//
// They are read by short requests, again when the stream of what is shown brings a change of the
// object. A stream of its own would take one of the browser's few connections.

import { changeOf } from './change_rows.js';
import { followsChanges, prepared, takeKinds } from './changes.js';
import { held } from './collections.js';
import { adviceOn, adviceOnChanges, ask, pause, statusOf } from './connection.js';
import { focusList, redraw } from './list.js';
import { apiPath, watches } from './objects.js';
import { filters, narrow, state } from './state.js';
import { awake, lines, onChanged } from './streams.js';
import { bdi, by, el, full, plain } from './text.js';
import { folded, yaml } from './yaml.js';

// The most changes that are shown.
const LAST = 50;
// Minimum pause before the object is read again, in ms: one that changes all the time is too.
const READ_AGAIN = 500;
// Pause before that where no stream tells of changes, in ms.
const POLL = 5000;
// What the panel covers at a narrow width.
const COVERED = '.skip, body > header, #views, #collections, #stream';
// Refusals that are shown in place of the last changes. Others may be over soon.
const LASTING = [400, 403, 404, 410];

// The object that is shown: `{ resource, namespace, name }`.
let shown = null;
let stop = null;
// Aborted when the object has changed, or is shown no more.
let changed = new AbortController();
// The last changes that are shown, by version and verb; `null` before the first.
let known = null;
// The version of the object whose YAML is shown.
let version = '';

export const isOpen = () => shown !== null;

// Opens an entry of the list: a change or an object, after a pause in ms if there is one.
export function open(it, wait = 0) {
  redraw(false);
  if (it.type === 'gap') return;
  state.picked = it;
  closeDetail(false);
  const resource = resourceOf(it);
  const of = { resource, namespace: it.namespace || '', name: it.name };
  shown = of;
  document.body.classList.add('with-detail');
  by('detail').hidden = false;
  cover();
  if (narrow.matches) by('detail-name').focus({ preventScroll: true });
  const group = resource.group ? `${resource.group}/` : '';
  by('detail-kind').textContent = plain(`${resource.kind} · ${group}${resource.version}`);
  by('detail-name').replaceChildren(bdi(full(of)));
  by('history').replaceChildren();
  by('yaml').replaceChildren('…');
  const stopping = new AbortController();
  stop = () => stopping.abort();
  readOn(of, wait, stopping.signal);
}

export function closeDetail(isFocused) {
  if (stop) stop();
  stop = null;
  changed.abort();
  shown = null;
  by('detail').hidden = true;
  document.body.classList.remove('with-detail');
  cover();
  if (isFocused) focusList();
}

// What the panel covers at a narrow width is out of the reach of keys.
function cover() {
  const covered = document.querySelectorAll(COVERED);
  for (const it of covered) it.inert = shown !== null && narrow.matches;
}
narrow.addEventListener('change', cover);

// Shows the 'history' or the 'yaml'.
export function showTab(name) {
  for (const tab of ['history', 'yaml']) {
    const button = by(`tab-${tab}`);
    by(tab).hidden = tab !== name;
    button.setAttribute('aria-selected', String(tab === name));
    button.tabIndex = tab === name ? 0 : -1;
  }
}
export const otherTab = () => (by('yaml').hidden ? 'yaml' : 'history');

// Objects know their resource, changes its id, as `deployments.v1.apps`.
function resourceOf(it) {
  if (typeof it.resource !== 'string') return it.resource;
  const collection = held.get(it.resource);
  if (collection) return collection;
  const [plural, version, ...group] = it.resource.split('.');
  const namespaced = Boolean(it.namespace);
  return { id: it.resource, plural, version, group: group.join('.'), kind: it.kind, namespaced };
}

onChanged((id, namespace, name) => {
  const is = shown && shown.name === name && shown.namespace === namespace;
  if (is && shown.resource.id === id) changed.abort();
});

// Reads an object as often as it changes.
async function readOn(of, wait, signal) {
  known = null;
  version = '';
  await pause(wait, signal);
  while (!signal.aborted) {
    // Before it is read: what happens meanwhile is read with the next turn.
    const turn = new AbortController();
    changed = turn;
    const isRead = await readHistory(of, signal);
    if (signal.aborted) return;
    if (known && known.gone) gone(); else await readYaml(of, signal);
    await pause(READ_AGAIN, signal);
    if (signal.aborted) return;
    do {
      await pause(POLL, turn.signal);
    } while (!turn.signal.aborted && isRead && isTold(of));
    await awake(signal);
  }
}

// Whether the stream of what is shown tells of each change of an object. Labels may change.
function isTold(of) {
  const follows = state.view === 'objects' ? watches : followsChanges;
  const { namespace, labels } = filters;
  return follows(of.resource) && !labels && (!namespace || namespace === of.namespace);
}

// Shows the last changes. Whether they could be read.
async function readHistory(of, signal) {
  const query = new URLSearchParams({ resource: of.resource.id, name: of.name, last: LAST });
  if (of.namespace) query.append('namespace', of.namespace);
  query.append('follow', 'false');
  try {
    const last = [];
    for await (const batch of lines(await ask(`ui/changes?${query}`, { signal }))) {
      for (const line of batch) {
        if (line.type === 'hello') takeKinds(line);
        if (line.type === 'change') last.unshift(line);
      }
    }
    if (!signal.aborted) showHistory(last);
    return true;
  } catch (error) {
    if (!signal.aborted && LASTING.includes(statusOf(error))) {
      known = null;
      sayOfHistory(adviceOnChanges(error, of.resource.id));
    }
    return false;
  }
}

// Elements that are shown already stay, with what is selected in them.
function showHistory(last) {
  const before = known;
  known = { elements: new Map(), gone: last.length > 0 && last[0].verb === 'deleted' };
  for (const line of last) {
    const key = `${line.version} ${line.verb}`;
    const element = before && before.elements.get(key);
    known.elements.set(key, element || changeOf(prepared(line), before !== null));
  }
  if (!last.length) {
    sayOfHistory('No change since this endpoint began to hold it.');
    return;
  }
  const wanted = [...known.elements.values()];
  const history = by('history');
  for (const it of [...history.children]) if (!wanted.includes(it)) it.remove();
  history.prepend(...wanted.filter((it) => it.parentNode !== history));
}

async function readYaml(of, signal) {
  const node = by('yaml');
  try {
    const path = apiPath(of.resource, of.namespace, of.name);
    const headers = { Accept: 'application/json' };
    const object = await (await ask(path, { signal, headers })).json();
    // What is selected in it stays.
    if (signal.aborted || version === object.metadata.resourceVersion) return;
    version = object.metadata.resourceVersion;
    const top = node.scrollTop;
    node.replaceChildren(...yaml(folded(object)));
    node.scrollTop = top;
  } catch (error) {
    if (signal.aborted) return;
    if (statusOf(error) === 404) gone(); else sayOfYaml(adviceOn(error));
  }
}

const gone = () => sayOfYaml('It is gone. Its last changes tell how it was.');
const sayOfYaml = (text) => {
  version = '';
  by('yaml').replaceChildren(el('span', { class: 'note', text: `# ${text}` }));
};
const sayOfHistory = (text) => by('history').replaceChildren(el('p', { class: 'empty', text }));
