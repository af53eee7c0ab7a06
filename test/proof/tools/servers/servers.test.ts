import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmdirSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, afterEach, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { until } from '../../../../src/testing/until.ts'
import { canInstall } from '../../../../tools/servers/apt.ts'
import { startRecipes, startServers } from '../../../../tools/servers/index.ts'
import { leftovers, leftoversInTheEnd } from '../../../../tools/servers/leftovers.ts'
import { nats } from '../../../../tools/servers/nats.ts'
import { postgres } from '../../../../tools/servers/postgres.ts'
import { rabbitmq } from '../../../../tools/servers/rabbitmq.ts'
import { redis } from '../../../../tools/servers/redis.ts'
import type { Recipe } from '../../../../tools/servers/server.ts'
import { supervise } from '../../../../tools/servers/supervisor.ts'

const inherited = { url: process.env[postgres.variable], ci: process.env.CI }
const quiet = { log: () => {} }
const skipPostgres = postgres.find() === undefined && !canInstall() ? 'PostgreSQL is not installed' : false

// The test command names a shared server; these tests are about private ones.
for (const { variable } of [postgres, redis, rabbitmq, nats]) delete process.env[variable]
after(() => {
  if (inherited.url !== undefined) process.env[postgres.variable] = inherited.url
})

suite('a private PostgreSQL server', { skip: skipPostgres }, () => {
  test('starts, answers, is durable, and leaves nothing behind', async () => {
    const lines: string[] = []
    const servers = await startServers(['postgres'], { log: (line) => lines.push(line) })
    const [server] = servers.started
    assert(server !== undefined)
    assert.deepEqual(servers.env, { [postgres.variable]: server.url })
    assert.match(lines.join('\n'), /^postgres: starting a private server on port \d+ …\npostgres: ready in [\d.]+ s$/)

    const client = new Client({ connectionString: server.url })
    await client.connect()
    assert.deepEqual(await settings(client, ['fsync', 'synchronous_commit', 'full_page_writes', 'max_connections']), {
      fsync: 'on',
      synchronous_commit: 'on',
      full_page_writes: 'on',
      max_connections: '200',
    })
    assert.deepEqual(await settings(client, ['server_encoding', 'lc_collate']), {
      server_encoding: 'UTF8',
      lc_collate: 'C',
    })
    await client.end()

    await servers.stop()
    assert.deepEqual(leftovers(server.folder), [])
    assert.equal(await answers(server.port), false)
    await servers.stop()
  })

  test('ends although clients are still connected', async () => {
    const servers = await startServers(['postgres'], quiet)
    const [server] = servers.started
    assert(server !== undefined)
    const client = new Client({ connectionString: server.url })
    client.on('error', () => {})
    await client.connect()
    await servers.stop()
    assert.deepEqual(leftovers(server.folder), [])
  })

  for (const end of ['SIGKILL', 'SIGTERM', 'SIGINT', 'an uncaught error', 'forgetting to stop'] as const) {
    test(`does not outlive a parent that ends by ${end}`, async () => {
      const parent = await startParent()
      if (end.startsWith('SIG')) parent.process.kill(end as NodeJS.Signals)
      else parent.process.stdin.write(end)
      await once(parent.process, 'close')
      assert.deepEqual(await leftoversInTheEnd(parent.folder), [])
    })
  }

  test('does not outlive a parent that is killed while it starts', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'onceonly-test-'))
    // As in /tmp, the other user that the server runs as has to be let in.
    chmodSync(folder, 0o1777)
    const program = `
      import { startServers } from '${import.meta.dirname}/../../../../tools/servers/index.ts'
      await startServers(['postgres'], { log: () => {} })`
    const parent = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      env: { ...process.env, TMPDIR: folder },
      stdio: 'ignore',
    })
    const [name = ''] = await until(
      'its folder is there',
      () => readdirSync(folder),
      ({ length }) => length > 0,
    )
    // Somewhere in its start; whatever that is, nothing may be left.
    await sleep(100)
    parent.kill('SIGKILL')
    assert.deepEqual(await leftoversInTheEnd(join(folder, name)), [])
    rmdirSync(folder)
  })
})

test('a server named by the environment is used as it is and never stopped', { skip: skipPostgres }, async () => {
  const own = await startServers(['postgres'], quiet)
  try {
    const url = own.env[postgres.variable]
    assert(url !== undefined)
    process.env[postgres.variable] = url
    const servers = await startServers(['postgres'], quiet)
    assert.deepEqual(servers.env, { [postgres.variable]: url })
    assert.deepEqual(servers.started, [])
    await servers.stop()
    assert.equal(await answers(Number(new URL(url).port)), true)
  } finally {
    delete process.env[postgres.variable]
    await own.stop()
  }
})

for (const recipe of [redis, rabbitmq, nats]) {
  const skip = recipe.find() === undefined && !canInstall() ? `${recipe.kind} is not installed` : false
  test(`a private server of the kind ${recipe.kind} starts, answers and leaves nothing behind`, { skip }, async () => {
    const servers = await startServers([recipe.kind], quiet)
    const [server] = servers.started
    assert(server !== undefined)
    const ports = [server.port, ...server.morePorts]
    assert.equal(ports.length, recipe.kind === 'rabbitmq' ? 3 : 1)
    for (const port of ports) assert.equal(await answers(port), true)
    await servers.stop()
    assert.deepEqual(leftovers(server.folder), [])
    for (const port of ports) assert.equal(await answers(port), false)
  })
}

suite('a server that is halted', () => {
  test('keeps what it had, and its port, until it is revived', { skip: skipPostgres }, async () => {
    const servers = await startServers(['postgres'], quiet)
    const [server] = servers.started
    assert(server !== undefined)
    const { pid, url } = server
    await withClient(url, (client) => client.query('CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)'))

    await server.halt()
    assert.equal(await answers(server.port), false)
    assert.equal(isRunning(-pid), false)
    await server.revive()
    assert.notEqual(server.pid, pid)
    const { rows } = await withClient(url, (client) => client.query('SELECT n FROM kept'))
    assert.deepEqual(rows, [{ n: 7 }])

    await servers.stop()
    assert.deepEqual(leftovers(server.folder), [])
  })

  test('is removed by stop() all the same', async () => {
    let folder = ''
    const fake = { ...fakeRecipe('exec sleep 600', (place) => (folder = place)), isReady: async () => true }
    const servers = await startRecipes([fake], quiet)
    await servers.started[0]?.halt()
    assert.equal(existsSync(folder), true)
    await servers.stop()
    assert.deepEqual(leftovers(folder), [])
  })

  test('does not leave its folder to a parent that was killed', { skip: skipPostgres }, async () => {
    const program = `
      import { startServers } from '${import.meta.dirname}/../../../../tools/servers/index.ts'
      const servers = await startServers(['postgres'], { log: () => {} })
      await servers.started[0].halt()
      console.log(servers.started[0].folder)
      setInterval(() => {}, 1_000)`
    const parent = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [folder] = await once(createInterface({ input: parent.stdout }), 'line')
    assert(existsSync(folder))
    parent.kill('SIGKILL')
    assert.deepEqual(await leftoversInTheEnd(String(folder)), [])
  })
})

suite('a server that is missing', () => {
  const missing = { ...fakeRecipe('true'), find: () => undefined }
  afterEach(() => {
    if (inherited.ci === undefined) delete process.env.CI
    else process.env.CI = inherited.ci
  })

  test('is a loud skip', async () => {
    delete process.env.CI
    const lines: string[] = []
    const servers = await startRecipes([missing], { log: (line) => lines.push(line) })
    assert.deepEqual(servers.env, {})
    assert.match(lines.join('\n'), /^fake: NO SERVER FOUND.*SKIPPED.*ONCEONLY_TEST_FAKE_URL$/)
  })

  test('is an error in CI', async () => {
    process.env.CI = 'true'
    await assert.rejects(startRecipes([missing], quiet), /^Error: fake: no server found; install it/)
  })
})

suite('a server that does not start', () => {
  test('is reported with its log, and leaves nothing behind', async () => {
    let folder = ''
    const failing = fakeRecipe('echo "no luck today"; exit 7', (place) => (folder = place))
    await assert.rejects(startRecipes([failing], quiet), /ended with status 7.*\n.*no luck today/)
    assert.deepEqual(leftovers(folder), [])
  })

  test('is tried again on another port when the first is taken', async () => {
    const lines: string[] = []
    const places: string[] = []
    const unlucky = fakeRecipe('echo "Address already in use"; exit 1', (place) => places.push(place))
    await assert.rejects(startRecipes([unlucky], { log: (line) => lines.push(line) }))
    assert.equal(places.length, 3)
    assert.match(lines.join('\n'), /was taken meanwhile, trying another/)
  })

  test('ends those that did', async () => {
    let folder = ''
    const good = { ...fakeRecipe('exec sleep 600', (place) => (folder = place)), isReady: async () => true }
    await assert.rejects(startRecipes([good, fakeRecipe('exit 7')], quiet))
    assert.deepEqual(leftovers(folder), [])
  })
})

const FOR_EVER_MS = 600_000

suite('the supervisor', () => {
  test('kills a server, and its helpers, that do not end by the signal', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'onceonly-test-'))
    const script = `trap '' TERM; : >'${folder}/ready'; tail -f '${folder}/ready' & wait; sleep 600`
    const server = await supervise({ script, folder, owner: undefined, stopSignal: 'TERM', graceMs: 200 })
    await until('the server is ready', () => existsSync(join(folder, 'ready')))
    await server.stop()
    assert.deepEqual(leftovers(folder), [])
  })

  test('ends a server that was paused by SIGSTOP', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'onceonly-test-'))
    const server = await supervise({
      script: 'exec sleep 600',
      folder,
      owner: undefined,
      stopSignal: 'TERM',
      graceMs: FOR_EVER_MS,
    })
    await until('the server runs', () => isRunning(-server.pid))
    process.kill(-server.pid, 'SIGSTOP')
    // It is woken: waiting for it would take longer than a test may.
    await server.stop()
    assert.equal(existsSync(folder), false)
  })
})

/** A recipe for a "server" that any machine has. */
function fakeRecipe(script: string, onStart: (folder: string) => unknown = () => {}): Recipe {
  return {
    kind: 'fake',
    variable: 'ONCEONLY_TEST_FAKE_URL',
    packages: [],
    accounts: ['nobody'],
    stopSignal: 'TERM',
    find: () => '/bin',
    script(_programs, place) {
      onStart(place.folder)
      return script
    },
    isReady: async () => false,
    url: ({ port }) => `fake://127.0.0.1:${port}`,
  }
}

/** Another process that starts a server, says where, and does what it reads from its standard input. */
async function startParent() {
  const program = `
    import { startServers } from '${import.meta.dirname}/../../../../tools/servers/index.ts'
    const servers = await startServers(['postgres'], { log: () => {} })
    console.log(servers.started[0].folder)
    process.stdin.once('data', order => {
      process.stdin.destroy()
      if (order.toString() === 'an uncaught error') throw new Error('for the test')
    })`
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const [folder] = await once(createInterface({ input: parent.stdout }), 'line')
  assert(existsSync(folder))
  return { process: parent, folder: String(folder) }
}

async function settings(client: Client, names: readonly string[]): Promise<Record<string, string>> {
  const { rows } = await client.query('SELECT name, setting FROM pg_settings WHERE name = ANY ($1)', [names])
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
}

async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
