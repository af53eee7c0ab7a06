import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SidebarPage } from './sidebar.ts'

/** Links of the built pages to files or headings that do not exist. VitePress finds lost pages, and no lost headings. */
export function deadLinks(site: string, pages: readonly SidebarPage[]): readonly string[] {
  const texts = new Map<string, string | null>()
  const textOf = (file: string) => {
    if (!texts.has(file)) texts.set(file, existsSync(file) ? readFileSync(file, 'utf8') : null)
    return texts.get(file) ?? null
  }
  return ['index', ...pages.map(({ slug }) => slug)].flatMap((slug) => {
    const here = join(site, `${slug}.html`)
    const text = textOf(here)
    if (text === null) return [`${slug}.html was not built`]
    return [...text.matchAll(/<a\b[^>]*? href="([^"]+)"/g)]
      .map(([, href = '']) => href)
      .filter((href) => !/^[a-z]+:/.test(href) && isDead(href))
      .map((href) => `${slug}.html: ${href}`)

    function isDead(href: string): boolean {
      const [path = '', hash] = href.split('#')
      const file = path === '' ? here : path.startsWith('/') ? join(site, path) : join(dirname(here), path)
      const target = [file, `${file}.html`, join(file, 'index.html')].find(
        (each) => /\.\w+$/.test(each) && existsSync(each),
      )
      if (target === undefined) return true
      return (
        hash !== undefined && hash !== '' && !(textOf(target)?.includes(`id="${decodeURIComponent(hash)}"`) ?? false)
      )
    }
  })
}
