import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, '../../ops/clusters')

/** A configuration file of `ops/clusters` with its `${NAMES}` filled in. A name without a value, or the reverse, is an error. */
export function configOf(file: string, values: Readonly<Record<string, string | number | boolean>>): string {
  const unused = new Set(Object.keys(values))
  const text = readFileSync(join(FOLDER, file), 'utf8').replaceAll(/\$\{([A-Z_]+)\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`${file}: \${${name}} has no value.`)
    unused.delete(name)
    return String(value)
  })
  if (unused.size > 0) throw new Error(`${file} does not mention ${[...unused].join(', ')}.`)
  return text
}
