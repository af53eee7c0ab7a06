/** Whether a body can be sent a second time: a stream is gone after the first, and so is the request with it. */
export function repeatable(body: RequestInit['body']): boolean {
  if (body === null || body === undefined || typeof body === 'string') return true
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return true
  return body instanceof Blob || body instanceof FormData || body instanceof URLSearchParams
}
