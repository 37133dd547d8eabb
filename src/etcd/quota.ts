import http from 'node:http'
import https from 'node:https'
import type { TlsMaterial } from './tls-material.ts'

const TIMEOUT_MS = 5_000
/** Ten times the size of etcd's metrics. */
const RESPONSE_BYTES_MAX = 2 * 1024 * 1024
const QUOTA = /^etcd_server_quota_backend_bytes (\S+)$/m

/**
 * Reads the space quota of a member from its metrics: etcd 3.5 exposes it nowhere else. The metrics
 * are served on the client URL. Rejects when the quota cannot be read, and when the signal aborts.
 */
export async function readQuota(
  endpoint: string,
  { tls, signal }: { readonly tls: TlsMaterial | undefined; readonly signal: AbortSignal },
): Promise<number> {
  const url = new URL('/metrics', /^https?:/.test(endpoint) ? endpoint : `http://${endpoint}`)
  const text = await (url.protocol === 'https:'
    ? read((done) => https.get(url, { ...tls, agent: false, signal }, done))
    : read((done) => http.get(url, { agent: false, signal }, done)))
  const bytes = Number(QUOTA.exec(text)?.[1])
  if (!(bytes > 0)) throw new Error(`${endpoint}/metrics does not contain the quota`)
  return bytes
}

function read(
  get: (done: (response: http.IncomingMessage) => void) => http.ClientRequest,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get((response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
        if (text.length <= RESPONSE_BYTES_MAX) return
        request.destroy(new Error('the metrics are too large'))
      })
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(text)
        else reject(new Error(`GET /metrics of etcd returned status ${response.statusCode}`))
      })
    })
    request.setTimeout(TIMEOUT_MS, () => request.destroy(new Error('etcd did not respond in time')))
    request.on('error', reject)
  })
}
