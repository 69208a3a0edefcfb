// An object as YAML for a screen.

import { el, plain } from './text.js';

// Texts that need no quotes.
const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$/;
const RESERVED = /^(true|false|null|yes|no|on|off|y|n|\.inf|\.nan)$/i;
const isPlain = (text) => PLAIN.test(text) && !RESERVED.test(text);
const quoted = (text) => (isPlain(text) ? text : plain(JSON.stringify(text)));
// Control characters that a block cannot have, all but the line feed.
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

// The pieces of an object as YAML, each of one colour: texts and elements.
export function yaml(object) {
  const out = [];
  const put = (text, kind) => out.push(kind ? el('span', { class: kind }, text) : text);
  const leaf = (value, indent) => {
    if (isEmpty(value)) put(JSON.stringify(value)); else scalar(value, indent, put);
  };
  const walk = (value, indent, isFirst) => {
    if (Array.isArray(value)) {
      value.forEach((item, at) => {
        if (at > 0 || !isFirst) put(`${at > 0 || indent ? '\n' : ''}${indent}`);
        put('- ');
        if (isNested(item)) walk(item, `${indent}  `, true); else leaf(item, `${indent}  `);
      });
      return;
    }
    Object.entries(value).forEach(([key, item], at) => {
      if (at > 0 || !isFirst) put(`\n${indent}`);
      put(quoted(key), 'key');
      put(':');
      if (isNested(item)) {
        walk(item, Array.isArray(item) ? indent : `${indent}  `, false);
      } else {
        put(' ');
        leaf(item, `${indent}  `);
      }
    });
  };
  walk(object, '', true);
  put('\n');
  return out;
}

// Without what nobody reads here; values of Secrets are not for a screen.
export function folded(object) {
  const copy = structuredClone(object);
  if (copy.metadata) {
    delete copy.metadata.managedFields;
    const annotations = copy.metadata.annotations;
    if (annotations) delete annotations['kubectl.kubernetes.io/last-applied-configuration'];
    if (annotations && Object.keys(annotations).length === 0) delete copy.metadata.annotations;
  }
  if (copy.kind === 'Secret') {
    for (const part of ['data', 'stringData']) {
      for (const key of Object.keys(copy[part] || {})) copy[part][key] = '(hidden)';
    }
  }
  return copy;
}

const isObject = (value) => typeof value === 'object' && value !== null;
const isEmpty = (value) => isObject(value) && Object.keys(value).length === 0;
const isNested = (value) => isObject(value) && !isEmpty(value);

function scalar(value, indent, put) {
  if (typeof value !== 'string') { put(JSON.stringify(value), 'literal'); return; }
  if (!isBlock(value)) { put(quoted(value), 'text'); return; }
  const end = value.endsWith('\n\n') ? '+' : value.endsWith('\n') ? '' : '-';
  put(`|${end}`);
  const body = value.endsWith('\n') ? value.slice(0, -1) : value;
  put(body.split('\n').map((line) => (line ? `\n${indent}${line}` : '\n')).join(''), 'text');
}

// Whether a text may be written in lines of its own.
function isBlock(value) {
  const joined = value.replace(/\n/g, '');
  return value.includes('\n') && !CONTROL.test(value) && !/^[ \n]/.test(value)
    && plain(joined) === joined;
}
