import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { rolldown } from 'rolldown'
import { root } from '../command.ts'

const sources = join(root, 'src')

/** Programs that the package starts by their path. */
const programs = ['admin/cli/main.ts', 'admin/cli/replay-process.ts', 'http/gateway/fingerprint-thread.ts']

/**
 * The JavaScript of the package: one file for each entry, and what several of them share in files of its own. Without
 * comments, which the declarations keep, but neither renamed nor squeezed: people read it when something goes wrong.
 */
export async function bundlePackage(folder: string): Promise<void> {
  const files = [...entries(), ...programs]
  const input = Object.fromEntries(files.map((file) => [file.replace(/\.ts$/, ''), join(sources, file)]))
  const bundle = await rolldown({
    input,
    platform: 'node',
    // The oldest Node that is supported does not know `using`.
    transform: { target: 'es2024' },
    // Frameworks and drivers are the user's own; helpers of the compiler are ours.
    external: (id) => !/^(?:[.\0]|@oxc-project\/)/.test(id) && !isAbsolute(id),
  })
  await bundle.write({
    dir: folder,
    format: 'es',
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: ({ moduleIds }) => `${placeOf(moduleIds)}/[name].js`,
  })
  await bundle.close()
}

function entries(): readonly string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { readonly default: string } | string>
  }
  return Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [entry.default.replace('./dist/', '').replace(/\.js$/, '.ts')],
  )
}

/** A file that finds others by where it stands must stand in the folder that it was written for. */
function placeOf(modules: readonly string[]): string {
  const placed = modules.filter(
    (file) => file.startsWith(sources) && readFileSync(file, 'utf8').includes('import.meta.'),
  )
  const [place = 'shared', ...others] = new Set(placed.map((file) => relative(sources, dirname(file))))
  if (others.length > 0) throw new Error(`One file cannot stand in ${place} and in ${others.join(', ')}.`)
  return place
}
