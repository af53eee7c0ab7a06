import type { IForbiddenRuleType } from 'dependency-cruiser'
import { nodeInCore, outsiders, rooms, testsAlsoImport } from './table.ts'

/** Tests, and what only they use. */
const test = '(\\.test\\.ts|/test-[^/]+\\.ts)$'

export const rules: IForbiddenRuleType[] = [
  ...Object.entries(rooms).flatMap(([room, allowed]) => [
    door(`doors of ${room}`, room, { path: files(room), pathNot: test }, allowed),
    door(`doors of ${room}, tests`, room, { path: `${files(room)}.*${test}` }, [...allowed, ...testsAlsoImport]),
  ]),
  {
    name: 'nothing in core but core',
    severity: 'error',
    from: { path: '^src/ledger/core/', pathNot: [test, escape(nodeInCore.file)] },
    to: { pathNot: '^src/' },
  },
  {
    name: 'one part of Node for the digest',
    severity: 'error',
    from: { path: escape(nodeInCore.file) },
    to: { pathNot: ['^src/', `^(node:)?${nodeInCore.builtin.replace('node:', '')}$`] },
  },
  {
    name: 'src stands alone',
    severity: 'error',
    from: { path: '^src/' },
    to: { path: '^(service|console|test|bench|lab|tools|examples|dist)/' },
  },
  {
    name: 'drivers are borrowed',
    severity: 'error',
    from: { path: '^src/', pathNot: ['^src/admin/cli/', test] },
    to: { path: 'node_modules/', dependencyTypesNot: ['npm', 'npm-peer'] },
  },
  {
    name: 'only what the package exports',
    severity: 'error',
    from: { path: `^(${outsiders.join('|')})/` },
    to: { path: '^src/', dependencyTypes: ['local'] },
  },
  { name: 'no cycles', severity: 'error', from: {}, to: { circular: true } },
]

/** Whatever of `src` is not behind an open door is closed; a room is always open to itself. */
function door(
  name: string,
  room: string,
  from: IForbiddenRuleType['from'],
  allowed: readonly string[],
): IForbiddenRuleType {
  // A store may import itself, caught as a group by `files`, and never another one.
  const itself = room.endsWith('/*') ? `^src/${room.slice(0, -1)}$1/` : files(room)
  return { name, severity: 'error', from, to: { path: '^src/', pathNot: [itself, ...allowed.map(files)] } }
}

/** The files of a room, without those of the rooms inside of it. */
function files(room: string): string {
  if (room.endsWith('.ts')) return `^${escape(`src/${room}`)}$`
  if (room.endsWith('/*')) return `^src/${room.slice(0, -1)}([^/]+)/`
  const inner = Object.keys(rooms)
    .filter((other) => other.startsWith(`${room}/`))
    .map((other) => other.slice(room.length + 1).replace(/\/\*$/, ''))
  return inner.length === 0 ? `^src/${room}/` : `^src/${room}/(?!(?:${inner.join('|')})/)`
}

function escape(path: string): string {
  return path.replaceAll('.', '\\.')
}
