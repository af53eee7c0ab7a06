import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Place } from '../../test/support/place.ts'
import { root } from '../../tools/command.ts'

export interface Commanded {
  readonly status: number
  /** How many it replayed, and what it found. */
  readonly summary: string
  readonly seconds: number
}

/** `onceonly replay --all`, as a person would type it, over the runs that `replayMany` left, with the code that changed. */
export async function replayByCommand(place: Place, progress: (line: string) => void): Promise<Commanded> {
  const config = join(place.folder, 'onceonly.config.ts')
  await writeFile(config, configOf(place))
  const startedMs = performance.now()
  const args = [
    '--conditions=onceonly-source',
    join(root, 'src/admin/cli/main.ts'),
    'replay',
    '--all',
    '--config',
    config,
  ]
  const child = spawn(process.execPath, args, {
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let summary = ''
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (/^\d+ replayed: /.test(line)) summary = line
  })
  createInterface({ input: child.stderr }).on('line', progress)
  const [status] = (await once(child, 'close')) as [number]
  return { status, summary, seconds: (performance.now() - startedMs) / 1_000 }
}

function configOf({ address }: Place): string {
  const from = (file: string) => JSON.stringify(join(root, 'test', file))
  return `
    import { changed } from ${from('run/many.ts')}
    import { openStore } from ${from('crash/place.ts')}
    export const runs = [changed]
    export const store = () => {
      const { store, close } = openStore(${JSON.stringify(address)})
      return { ...store, stop: close }
    }`
}
