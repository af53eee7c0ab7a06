import assert from 'node:assert/strict'
import fc from 'fast-check'
import { isOnceError } from 'onceonly'
import { names as known } from '../../../src/admin/cli/command.ts'
import { checkGatewayConfig } from '../../../src/http/gateway/check.ts'
import type { Commands } from '../../support/admin/cli/commands.ts'
import { assertUnpolluted, inherited, oddObject } from './odd-names.ts'

/** A configuration that is right. Each one that is thrown has one place changed, or is anything at all. */
const good = {
  upstream: 'http://127.0.0.1:3000',
  upstreams: { other: 'https://x.example/base' },
  routes: [
    {
      method: ['PUT', 'PATCH'],
      path: '/a/:id',
      caller: { claim: 'sub' },
      tenant: { header: 'x-org' },
      upstream: 'other',
    },
    { method: 'POST', path: '/b', caller: 'shared', key: 'optional', content: { withinMs: 1, onStoreDown: 'closed' } },
  ],
  timeouts: { answerMs: 10 },
  jwks: { issuer: 'https://id', audience: ['api'], url: 'https://id/keys' },
  console: { port: 0, operatorToken: 'sixteen-letters-or-more' },
  region: {
    self: 'eu',
    regions: { eu: 'http://127.0.0.1:1', us: 'http://127.0.0.1:2' },
    secret: 'a secret of thirty-two characters',
  },
}

type Place = readonly string[]

const places = placesOf(good)

function placesOf(value: unknown, at: Place = []): readonly Place[] {
  if (typeof value !== 'object' || value === null) return [at]
  return [at, ...Object.entries(value).flatMap(([name, each]) => placesOf(each, [...at, name]))]
}

function changed(value: unknown, [name, ...rest]: Place, other: unknown): unknown {
  if (name === undefined) return other
  if (Array.isArray(value)) return value.map((each, at) => (String(at) === name ? changed(each, rest, other) : each))
  const fields = value as Readonly<Record<string, unknown>>
  return { ...fields, [name]: changed(fields[name], rest, other) }
}

const anything = fc.anything({ withBigInt: true, withNullPrototype: true, withDate: true, withMap: true, maxDepth: 3 })

const odd = fc.oneof(
  inherited,
  oddObject.map((text) => JSON.parse(text) as unknown),
)

/** Every configuration is taken, or refused with a fault that names its place. */
export function throwConfigurations(count: number, seed: number): { taken: number; refused: number } {
  const tally = { taken: 0, refused: 0 }
  const given = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.tuple(fc.constantFrom(...places), anything).map(([at, other]) => changed(good, at, other)),
    },
    // A name that every object inherits, in place of an option, and as a key of a table.
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...places), odd).map(([at, other]) => changed(good, at, other)) },
    { weight: 1, arbitrary: anything },
  )
  fc.assert(
    fc.property(given, (config) => {
      try {
        checkGatewayConfig(config)
        tally.taken += 1
      } catch (error) {
        if (!isOnceError(error, 'bad_option')) throw error
        assert.ok(Array.isArray(error.details['faults']))
        tally.refused += 1
      }
      assertUnpolluted()
    }),
    { seed, numRuns: count },
  )
  return tally
}

/** These stay, or start processes of their own. */
const left = ['gateway', 'replay']
const names = known.filter((name) => !left.includes(name))
const flags = [
  '--json',
  '--yes',
  '--help',
  '--limit',
  '--since',
  '--by',
  '--id',
  '--batch',
  '--store',
  '--config',
  '--',
  '-x',
]

const word = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...flags) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('0', '-1', '1e9', '99d', '7d', '../..', 'postgres://', 'redis:', 'file:///', '{}', '"'),
  },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
)

/** Every command ends with a status that is documented, and never with a stack. */
export async function throwArguments(commands: Commands, count: number, seed: number): Promise<Record<string, number>> {
  const ends: Record<string, number> = {}
  const made = fc.tuple(
    fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...names) }, fc.string({ unit: 'binary', maxLength: 12 })),
    fc.array(word, { maxLength: 6 }),
  )
  for (const [name, rest] of fc.sample(made, { seed, numRuns: count })) {
    if (left.includes(name)) continue
    const { status, stderr } = await commands.run(...name.split('.'), ...rest)
    ends[status] = (ends[status] ?? 0) + 1
    assert.ok([0, 1, 2].includes(status), `${status} of ${JSON.stringify([name, ...rest])}`)
    assert.ok(!/\n\s+at /.test(stderr), `${JSON.stringify([name, ...rest])}: ${stderr}`)
    assert.ok(status !== 2 || stderr !== '' || name === '', `no word of ${JSON.stringify([name, ...rest])}`)
  }
  return ends
}
