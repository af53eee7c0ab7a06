import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../../../tools/command.ts'
import type { Bench } from '../../harness/bench.ts'
import { byTurns } from '../../harness/compare.ts'
import { createFolder } from '../../harness/folder.ts'
import { withPostgres } from '../../harness/postgres.ts'
import { withRedis } from '../../harness/redis.ts'
import { adapters } from '../task.ts'
import type { AnatomyTask, Kept } from './task.ts'

const PROGRAM = 'bench/http-overhead/anatomy/side.ts'
/** What the programs of this benchmark are made of: the other commit's package is measured by those of today. */
const PROGRAMS = ['bench/harness', 'bench/http-overhead']
const PAIRS = 5

const cases = [
  { store: 'memory', requests: 'first' },
  { store: 'memory', requests: 'replay' },
  { store: 'sqlite', requests: 'first' },
  { store: 'postgres', requests: 'first' },
  { store: 'redis', requests: 'first' },
] as const

type StoreName = (typeof cases)[number]['store']

/** `--anatomy --against COMMIT`: the CPU of a request now ÷ at that commit, by adapter and store, by turns. */
export async function compareCommits(bench: Bench, commit: string): Promise<void> {
  using folder = createFolder()
  const before = checkOut(commit, folder.file('before'))
  const count = bench.options.quick ? 1_000 : 5_000
  bench.note(`per request, of ${count} after twice as many; background work is off; Redis syncs once a second`)
  await withPostgres(bench, (postgres) =>
    withRedis(bench, async (redis) => {
      const somewhere = <T>(store: StoreName, use: (kept: Kept) => Promise<T>): Promise<T> => {
        switch (store) {
          case 'memory':
          case 'sqlite':
            return use({ store })
          case 'postgres':
            return postgres.withDatabase(({ url }) => use({ store, url }))
          case 'redis':
            return redis.withEmpty('everysec', ({ url }) => use({ store, url }))
        }
      }
      for (const adapter of adapters) {
        for (const { store, requests } of cases) {
          const measure = (place: string) =>
            somewhere(store, (kept) => {
              const task: AnatomyTask = { adapter, kept, requests, count, cpuOnly: true }
              return bench.side({ program: pathToFileURL(join(place, PROGRAM)).href, task })
            })
          await bench.compare({
            name: `${adapter}, ${store}, ${requests}`,
            pairs: PAIRS,
            ours: 'now',
            other: commit,
            measure: byTurns(
              () => measure(root),
              () => measure(before),
            ),
            wanted: [{ figure: 'cpuUs', label: 'CPU µs per request', of: 'ratio' }],
          })
        }
      }
    }),
  )
}

function checkOut(commit: string, folder: string): string {
  mkdirSync(folder)
  const files = execFileSync('git', ['archive', '--format=tar', commit, 'package.json', 'src', 'tools'], {
    cwd: root,
    maxBuffer: 1_024 ** 3,
  })
  execFileSync('tar', ['-x', '-C', folder], { input: files })
  for (const path of PROGRAMS) cpSync(join(root, path), join(folder, path), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}
