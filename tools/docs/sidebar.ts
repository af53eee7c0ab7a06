/** The order of the sidebar. A page that is not listed stands at the end of the group that its front matter names. */
const groups: Readonly<Record<string, readonly string[]>> = {
  Start: ['start', 'guides/choosing-a-store', 'comparison'],
  Concepts: ['concepts/effectively-once', 'concepts/promises'],
  Guides: [
    'guides/http',
    'guides/same-transaction',
    'guides/orms',
    'guides/external-effects',
    'guides/guard',
    'guides/unique',
    'guides/webhooks',
    'guides/client',
    'guides/testing',
    'guides/production',
  ],
  'Your stack': [
    'guides/express-prisma',
    'guides/nestjs',
    'guides/nextjs',
    'guides/trpc',
    'guides/serverless',
    'guides/gateway',
    'guides/write-a-store',
  ],
  'Messages and runs': [
    'guides/events',
    'guides/runs',
    'guides/streams',
    'guides/stream-parts',
    'guides/campaigns',
    'guides/imports-from-s3',
  ],
  Migrating: [
    'migrating/express-idempotency',
    'migrating/node-idempotency',
    'migrating/powertools',
    'migrating/home-made-table',
  ],
  Operating: [
    'operating/runbook',
    'operating/console',
    'operating/telemetry',
    'operating/encryption',
    'operating/sql',
    'operating/sizing',
    'operating/a-billion-commands-a-day',
    'operating/postgres',
    'operating/redis',
    'operating/brokers',
    'operating/restores',
  ],
  Reference: [
    'reference/entries',
    'reference/errors',
    'reference/limits',
    'reference/first-mistakes',
    'reference/providers',
    'reference/retention',
    'reference/runs-elsewhere',
    'reference/state-machine',
    'reference/glossary',
    'reference/checklist',
  ],
  Project: ['performance', 'project/architecture', 'project/changelog'],
}

export interface SidebarPage {
  /** Its address without an ending, for example `guides/http`. */
  readonly slug: string
  readonly title: string
  readonly group: string
}

export interface SidebarGroup {
  readonly text: string
  readonly collapsed: boolean
  readonly items: readonly { readonly text: string; readonly link: string }[]
}

/** Open on arrival: what a new reader looks for. */
const OPEN = new Set(['Start', 'Concepts', 'Guides', 'Your stack'])

export function sidebarOf(pages: readonly SidebarPage[]): readonly SidebarGroup[] {
  const listed = new Map(Object.entries(groups).flatMap(([group, slugs]) => slugs.map((slug) => [slug, group])))
  const groupOf = ({ slug, group }: SidebarPage) => listed.get(slug) ?? group
  for (const page of pages) {
    if (!(groupOf(page) in groups)) throw new Error(`${page.slug}.md: "${page.group}" is no group of the sidebar.`)
  }
  return Object.entries(groups)
    .map(([text, slugs]) => {
      const place = ({ slug }: SidebarPage) => (slugs.includes(slug) ? slugs.indexOf(slug) : slugs.length)
      const members = pages.filter((page) => groupOf(page) === text).toSorted((a, b) => place(a) - place(b))
      return { text, collapsed: !OPEN.has(text), items: members.map(itemOf) }
    })
    .filter(({ items }) => items.length > 0)
}

function itemOf({ slug, title }: SidebarPage): { readonly text: string; readonly link: string } {
  return { text: title, link: `/${slug}` }
}
