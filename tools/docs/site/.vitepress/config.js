import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Written by `npm run docs`, which knows the pages. */
const folder = process.env['ONCEONLY_SITE'] ?? ''
const sidebar = JSON.parse(readFileSync(join(folder, 'sidebar.json'), 'utf8'))

const BOX = '[ ] '

/** `- [ ] …` is a box to tick, as it is where the pages are read in the repository. */
function tasks(markdown) {
  markdown.core.ruler.after('inline', 'tasks', ({ tokens, Token }) => {
    for (const { type, content, children } of tokens) {
      if (type !== 'inline' || !content.startsWith(BOX)) continue
      const box = new Token('html_inline', '', 0)
      box.content = '<input type="checkbox" aria-label="Done"> '
      children[0].content = children[0].content.slice(BOX.length)
      children.unshift(box)
    }
  })
}

export default {
  title: 'Onceonly',
  description: 'Retries made safe: a TypeScript toolkit that runs an effect once per key and replays its outcome.',
  lang: 'en',
  head: [['link', { rel: 'icon', href: '/icon.svg' }]],
  srcDir: join(folder, 'pages'),
  outDir: join(folder, 'site'),
  cacheDir: join(folder, 'cache'),
  // The reference is made beside it, by TypeDoc.
  ignoreDeadLinks: [/^\/api\//],
  lastUpdated: false,
  markdown: { theme: { light: 'github-light', dark: 'github-dark' }, config: tasks },
  themeConfig: {
    logo: '/icon.svg',
    search: { provider: 'local', options: { detailedView: true } },
    sidebar,
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Guides', link: '/guides/http', activeMatch: '^/guides/' },
      { text: 'Comparison', link: '/comparison' },
      { text: 'Operating', link: '/operating/runbook', activeMatch: '^/operating/' },
      { text: 'API', link: '/api/index.html', target: '_self' },
    ],
    footer: { message: 'MIT license. Delivery is at least once; the recorded outcome makes it effectively once.' },
  },
}
