import fc from 'fast-check'

/** What every object has already: a name from outside must neither find it nor change it. */
export const INHERITED = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'valueOf',
  'hasOwnProperty',
  '__defineGetter__',
] as const

export const inherited = fc.constantFrom(...INHERITED)

const POLLUTED = 'polluted'

/** As JSON, because an object that is written in a program cannot have a member that is called `__proto__`. */
export const oddObject = fc
  .array(fc.tuple(inherited, fc.constantFrom('1', '"x"', 'null', '[]', `{"${POLLUTED}":true}`)), { maxLength: 3 })
  .map((members) => `{${members.map(([name, value]) => `"${name}":${value}`).join(',')}}`)

/** Throws when anything that was thrown has reached what all objects share. */
export function assertUnpolluted(): void {
  if (POLLUTED in {} || POLLUTED in Object) throw new Error('A member from outside is one of every object.')
}
