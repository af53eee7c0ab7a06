const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/
/** A page that makes its own name mean 127.0.0.1 still sends that name as the host. */
const LOCAL_HOST = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i
/** Of a proxy on this machine, whose clients may be anywhere. */
const PASSED_ON = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via']

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** The request comes from this machine, asked for by a name of this machine, and was not passed on by a proxy. */
export function isLocal(remoteAddress: string | undefined, headers: Headers): boolean {
  if (PASSED_ON.some((name) => headers[name] !== undefined)) return false
  return LOOPBACK.test(remoteAddress ?? '') && LOCAL_HOST.test(String(headers['host'] ?? ''))
}
