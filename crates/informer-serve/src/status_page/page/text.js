// Texts and elements. Everything that the endpoint sends becomes a text node, never markup.

export const by = (id) => document.getElementById(id);

// Control characters, and those that turn the direction of a text, are shown as their code.
const STRANGE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const code = (letter) => '\\u' + letter.charCodeAt(0).toString(16).padStart(4, '0');
export const plain = (text) => String(text).replace(STRANGE, code);

// An element. `text` sets its text, `onclick` and the like a listener.
export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'class') node.className = value;
    else if (name === 'text') node.textContent = plain(value);
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((it) => it !== null && it !== undefined));
  return node;
}
export const bdi = (text) => el('bdi', { dir: 'ltr', text });
export const aside = (text) => el('span', { class: 'aside', text });

// Sets a text if it is another one: what is selected in it, and screen readers, stay as they are.
export function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Replaces the children if they are not these already.
export function fillWith(node, wanted) {
  const now = node.children;
  const isSame = wanted.length === now.length && wanted.every((it, at) => now[at] === it);
  if (!isSame) node.replaceChildren(...wanted);
}

const whole = new Intl.NumberFormat('en');
export const number = (value) => whole.format(value);
export const counted = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${at && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

export function span(seconds) {
  if (seconds < 1) return 'now';
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

// The time of day here; its day and zone are in the title.
export function timeOf(time) {
  const date = time ? new Date(time) : null;
  const isKnown = date && !Number.isNaN(date.getTime());
  return el('time', {
    text: isKnown ? date.toTimeString().slice(0, 8) : '–',
    title: isKnown ? `Local time: ${date}` : null,
  });
}

export const sentence = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);
// The name of an object as kubectl has it.
export const full = (it) => (it.namespace ? `${it.namespace}/${it.name}` : it.name);
