import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { rolldown } from 'rolldown'
import ts from 'typescript'
import { root } from '../command.ts'

const sources = join(root, 'src')

/** Programs that the package starts by their path. */
const programs = ['admin/cli/main.ts', 'admin/cli/replay-process.ts', 'http/gateway/fingerprint-thread.ts']

/**
 * The JavaScript of the package: one file for each entry, and what several of them share in files of its own. Without
 * comments, which the declarations keep. Names of functions would be a twentieth of the package, so that only classes and
 * methods keep theirs; every statement has a line of its own, so that a stack trace leads to it.
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
    minify: {
      compress: { target: 'es2024', keepNames: { function: false, class: true }, sequences: false },
      mangle: { toplevel: true, keepNames: { function: false, class: true } },
      codegen: { removeWhitespace: true },
    },
    entryFileNames: '[name].js',
    chunkFileNames: ({ moduleIds }) => `${placeOf(moduleIds)}/[name].js`,
  })
  await bundle.close()
  for (const file of globSync('**/*.js', { cwd: folder }).map((name) => join(folder, name))) {
    writeFileSync(file, inLines(readFileSync(file, 'utf8')))
  }
}

/** Puts each statement on a line of its own. */
function inLines(text: string): string {
  const starts: number[] = []
  const source = ts.createSourceFile('bundled.js', text, ts.ScriptTarget.ESNext, false, ts.ScriptKind.JS)
  const visit = (node: ts.Node): void => {
    if (ts.isSourceFile(node) || ts.isBlock(node)) starts.push(...node.statements.map((each) => each.getStart(source)))
    ts.forEachChild(node, visit)
  }
  visit(source)
  const ends = [...starts, text.length].toSorted((a, b) => a - b)
  return ends
    .map((end, index) => text.slice(ends[index - 1] ?? 0, end).trimEnd())
    .join('\n')
    .trim()
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
