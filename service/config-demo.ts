export type Env = Readonly<Record<string, string | undefined>>

export const DEFAULT_HOST = '127.0.0.1'
export const DEMO_VARIABLE = 'ONCEONLY_DEMO'

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i

/** Whether there is a demo: asked for, or where nothing says that the server is for more than to try it. */
export function demoOf(text: string, { HOST, NODE_ENV }: Env): { value: boolean } | { wrong: string } {
  const isPublic = !LOOPBACK.test(HOST || DEFAULT_HOST)
  switch (text) {
    case 'on':
      return isPublic ? { wrong: 'needs a HOST of this machine, such as 127.0.0.1' } : { value: true }
    case 'off':
      return { value: false }
    case 'auto':
      return { value: !isPublic && NODE_ENV !== 'production' }
    default:
      return { wrong: 'is none of on, off, auto' }
  }
}

/** A key that would be ignored stops the start: its owner would look for the fault in their requests. */
export const UNUSED_DEMO_KEY =
  'is not used: this server has no demo; operators add keys with POST /api/admin/workspaces/ID/keys'

export function isWithoutDemo(env: Env): boolean {
  const demo = demoOf(env[DEMO_VARIABLE] || 'auto', env)
  return 'value' in demo && !demo.value
}
