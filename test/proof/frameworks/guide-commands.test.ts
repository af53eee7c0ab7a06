import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { createDatabase } from '../../../tools/servers/database.ts'
import { freePorts } from '../../../tools/servers/server.ts'
import { type GuideStep, openReader, type Reader, stepsOf } from '../../support/guide-reader.ts'
import { installOwnPackages } from '../../support/own-packages.ts'
import { pack } from '../package/packed.ts'

/**
 * The guides that begin with an empty folder, command by command, with the package as it is published. What differs: packages
 * come from our lock files, the database and the port are those of the test, and Prisma's schema engine, which it would
 * download, is not run.
 */
const packagesOf = (folder: string) => join(import.meta.dirname, folder, 'app')
const [nest, orms] = [packagesOf('.'), packagesOf('../orms')]
const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']
const missing = (await installOwnPackages(nest)) || (await installOwnPackages(orms))
const skip = missing === false ? postgres === undefined && 'no PostgreSQL server' : missing

const folder = mkdtempSync(join(tmpdir(), 'onceonly-guides-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const onceonly = join(folder, 'onceonly')
if (skip === false) {
  mkdirSync(onceonly)
  execFileSync('tar', ['-xzf', pack(folder), '-C', onceonly, '--strip-components=1'])
}

/** Where the guides have the reader's database, and where their servers listen. */
const THEIR_DATABASE = 'postgres://postgres@localhost:5432/shop'
const THEIR_PORT = 'localhost:3000'

interface Opened {
  readonly reader: Reader
  readonly client: Client
  /** The text of a guide, for this database and this port. */
  here(text: string): string
}

async function opened(packages: string, work: (opened: Opened) => Promise<void>): Promise<void> {
  await using database = await createDatabase(postgres ?? '')
  const [port = 0] = await freePorts(1)
  const client = new Client({ connectionString: database.url })
  await client.connect()
  const engine = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' }
  const env = { DATABASE_URL: database.url, PORT: String(port), ...engine }
  await using reader = openReader({ packages, onceonly, env })
  try {
    const here = (text: string) =>
      text.replaceAll(THEIR_DATABASE, database.url).replaceAll(THEIR_PORT, `localhost:${port}`)
    await work({ reader, client, here })
  } finally {
    await client.end()
  }
}

/** Follows a guide up to its server, and then twice: the second server has the records of the first. */
async function follow({ reader, here }: Opened, steps: readonly GuideStep[], instead: (text: string) => string) {
  const last = steps.length - 2
  for (const step of steps.slice(0, last)) {
    if (step.kind === 'file') reader.write(step)
    else await reader.run(instead(here(step.text)))
  }
  const [serve, ask] = steps
    .slice(last)
    .map((step) => (step.kind === 'shell' ? here(step.text) : assert.fail(step.path)))
  const asked = async () => reader.run(ask ?? '')
  const first = await reader.serving(serve ?? '', async () => [await asked(), await asked()])
  const afterKill = await reader.serving(serve ?? '', asked)
  return [...first, afterKill]
}

function checkAnswers(answers: readonly string[], body: RegExp): void {
  assert.equal(answers.length, 3)
  for (const [index, answer] of answers.entries()) {
    assert.match(answer, /^HTTP\/1\.1 201/)
    assert.match(answer, body)
    assert.equal(/idempotent-replayed: true/i.test(answer), index > 0, answer)
  }
}

test('the commands of the guide of Express and Prisma', { skip }, async () => {
  await opened(orms, async (place) => {
    const table = 'CREATE TABLE "Order" (id serial PRIMARY KEY, item text NOT NULL)'
    const answers = await follow(place, stepsOf('express-prisma.md'), (text) => {
      if (!text.includes('prisma db push')) return text
      return text.replace('npx prisma db push', `psql -q "$DATABASE_URL" -c '${table}'`)
    })
    checkAnswers(answers, /\{"id":1,"item":"pen"\}$/)
    assert.deepEqual((await place.client.query('SELECT * FROM "Order"')).rows, [{ id: 1, item: 'pen' }])
  })
})

const asIs = (text: string) => text
const nestSteps = stepsOf('nestjs.md', '', '## What is recorded')

test('the commands of the guide of NestJS', { skip }, async () => {
  await opened(nest, async (place) => {
    checkAnswers(await follow(place, nestSteps, asIs), /\{"item":"pen","count":2\}$/)
    assert.deepEqual((await place.client.query('select * from orders')).rows, [{ item: 'pen', count: 2 }])
  })
})

test('the commands of the guide of NestJS with TypeORM', { skip }, async () => {
  await opened(nest, async (place) => {
    // Its program, and how to run and ask it, are those of the first part.
    const main = nestSteps.filter((step) => step.kind === 'file' && step.path === 'src/main.ts')
    const steps = [...stepsOf('nestjs.md', '## With TypeORM', '## Operation status'), ...main, ...nestSteps.slice(-2)]
    checkAnswers(await follow(place, steps, asIs), /\{"item":"pen","id":1\}$|\{"id":1,"item":"pen"\}$/)
    assert.deepEqual((await place.client.query('select * from orders')).rows, [{ id: 1, item: 'pen' }])
  })
})
