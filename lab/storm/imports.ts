import { ris } from '../../service/imports/parse/test-files.ts'
import { commandsIn, hookSecret, notification, type Seen } from '../../test/support/service/imports/imports.ts'
import { countOf, type System, type World } from './world.ts'

const FILES = ['a.ris', 'b.ris']
const PROJECT = 'storm'
/** So long that a file takes several packets, of which the network may carry some. */
const REFERENCES_MOST = 400
const COPIES_MOST = 3

/** Uploads, and notifications one to three times each: one job, one parse command per file, every reference once. */
export function createImports(world: World): System {
  const { cluster, clients, random, apiKey } = world
  const expected = new Map<string, number>()
  const counts = { uploads: 0, notifications: 0 }

  async function upload(searchId: string, name: string, references: number): Promise<void> {
    const body = Array.from({ length: references }, (_, at) => ris(at)).join('\n')
    const path = `/api/imports/${searchId}/files/${name}`
    const headers = { 'content-type': 'text/plain' }
    await clients.insist({ method: 'PUT', path, bearer: apiKey, headers, body }, ({ status }) => status < 202)
    counts.uploads += 1
    const secret = { 'x-hook-secret': hookSecret }
    const notified = { method: 'POST', path: '/hooks/s3', headers: secret, body: notification(searchId, name) }
    await Promise.all(
      Array.from({ length: 1 + random.below(COPIES_MOST) }, async () => {
        await clients.insist(notified, ({ status }) => status === 200)
        counts.notifications += 1
      }),
    )
  }

  return {
    name: 'imports',
    lanes: 2,
    async command(number) {
      const started = await clients.insist(
        {
          method: 'POST',
          path: '/api/imports',
          bearer: apiKey,
          headers: { 'idempotency-key': `import-${number}` },
          body: { projectId: PROJECT, searchName: `Search ${number}`, files: FILES },
        },
        ({ status }) => status === 201,
      )
      const searchId = String(started.body['searchId'])
      const references = FILES.map(() => 1 + random.below(REFERENCES_MOST))
      expected.set(
        searchId,
        references.reduce((sum, each) => sum + each, 0),
      )
      await Promise.all(FILES.map((name, at) => upload(searchId, name, references[at] ?? 0)))
    },
    async left() {
      const open = await countOf(world, `import_jobs where state not in ('Completed', 'Error')`)
      return open === 0 ? [] : [`${open} imports have not ended`]
    },
    async judge() {
      const wrong: string[] = []
      const [server] = cluster.servers
      if (server === undefined) return ['no server is left to ask']
      for (const [searchId, references] of expected) {
        const seen = (await server.get(`/api/imports/${searchId}`)).body as unknown as Seen
        const rows = await countOf(world, `import_references where search_id = '${searchId}'`)
        const found = `${seen.state}, ${commandsIn(seen)} commands, ${seen.references} references, ${rows} rows`
        const wanted = `Completed, ${FILES.length} commands, ${references} references, ${references} rows`
        if (found !== wanted) wrong.push(`import ${searchId} is ${found}; it should be ${wanted}`)
      }
      for (const table of ['import_jobs', 'import_searches']) {
        const made = await countOf(world, `${table} where project_id = '${PROJECT}'`)
        if (made !== expected.size) wrong.push(`${expected.size} imports were asked for, ${made} are in ${table}`)
      }
      return wrong
    },
    figures: () => ({ commands: expected.size, ...counts }),
  }
}
