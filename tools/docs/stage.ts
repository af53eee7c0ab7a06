import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { root } from '../command.ts'
import { errorsPage, limitsPage } from './reference.ts'
import type { SidebarPage } from './sidebar.ts'

/** Documents that stand outside of `docs/` and are pages of the site. */
const FROM_OUTSIDE: Readonly<Record<string, string>> = {
  'ARCHITECTURE.md': 'project/architecture.md',
  'CHANGELOG.md': 'project/changelog.md',
}

const MADE: Readonly<Record<string, () => string>> = {
  'reference/errors.md': errorsPage,
  'reference/limits.md': limitsPage,
}

/**
 * Writes the pages of the site into a folder: those of `docs/`, those from outside of it, and those that are made of the
 * sources. A link to a page leads to it; a link to another file of the repository leads to the repository.
 */
export function stage(folder: string): readonly SidebarPage[] {
  rmSync(folder, { recursive: true, force: true })
  const ours = globSync('**/*.md', { cwd: join(root, 'docs') }).toSorted()
  const places = new Map([...ours.map((path) => [`docs/${path}`, path] as const), ...Object.entries(FROM_OUTSIDE)])
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
    return { slug: path.replace(/\.md$/, ''), ...frontOf(path, text) }
  }
  const repository = repositoryUrl()
  const staged = [...places].map(([from, to]) =>
    write(to, linked(readFileSync(join(root, from), 'utf8'), { from, to, places, repository })),
  )
  const made = Object.entries(MADE).map(([to, page]) => write(to, page()))
  // Beside the pages, for what they show; and where the landing page finds them by an absolute address.
  for (const to of ['images', 'public/images']) cpSync(join(root, 'docs/images'), join(folder, to), { recursive: true })
  cpSync(join(root, 'console/src/icon.svg'), join(folder, 'public/icon.svg'))
  return [...staged, ...made].filter(({ slug }) => slug !== 'index')
}

interface Links {
  /** Where the page is in the repository, and where on the site. */
  readonly from: string
  readonly to: string
  readonly places: ReadonlyMap<string, string>
  readonly repository: string | null
}

/** Code is left as it is: what looks like a link in it is none. */
function linked(text: string, links: Links): string {
  return text
    .split(/(^```.*?^```$)/ms)
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part.replaceAll(/(?<!!)\[([^\]]*)\]\(([^)\s]+)\)/g, (...found) => rewritten(found, links)),
    )
    .join('')
}

function rewritten([whole, label, target]: readonly string[], { from, to, places, repository }: Links): string {
  if (whole === undefined || label === undefined || target === undefined) return ''
  if (/^[a-z]+:|^[#/]/.test(target)) return whole
  const [path = '', anchor] = target.split('#')
  const file = posix.join(posix.dirname(from), path)
  if (!existsSync(join(root, file))) throw new Error(`${from}: ${target} leads nowhere.`)
  const place = places.get(file)
  const hash = anchor === undefined ? '' : `#${anchor}`
  if (place !== undefined) return `[${label}](${relative(to, place)}${hash})`
  return repository === null ? label : `[${label}](${repository}/blob/main/${file}${hash})`
}

function relative(from: string, to: string): string {
  const path = posix.relative(posix.dirname(from), to)
  return path.startsWith('.') ? path : `./${path}`
}

/** Where the sources can be read on the web, once the package says so. */
function repositoryUrl(): string | null {
  const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly repository?: { readonly url: string }
  }
  return repository === undefined ? null : repository.url.replace(/^git\+/, '').replace(/\.git$/, '')
}

function frontOf(path: string, text: string): { readonly title: string; readonly group: string } {
  const [, front = ''] = /^---\n(.*?)\n---\n/s.exec(text) ?? []
  const field = (name: string) => new RegExp(`^${name}: (.+)$`, 'm').exec(front)?.[1]
  const title = field('title') ?? /^# (.+)$/m.exec(text)?.[1]
  if (title === undefined && path !== 'index.md') throw new Error(`${path}: no title.`)
  return { title: title ?? '', group: field('group') ?? (path.startsWith('project/') ? 'Project' : 'Guides') }
}
