import http from 'node:http'
import https from 'node:https'
import type { TlsMaterial } from './credentials.ts'

const TIMEOUT_MS = 5_000
/** etcd's metrics are a tenth of this. */
const ANSWER_BYTES_MAX = 2 * 1024 * 1024
const QUOTA = /^etcd_server_quota_backend_bytes (\S+)$/m

/**
 * The space quota of a member, which etcd 3.5 tells in its metrics alone; they are served where
 * clients are. Rejects when it cannot be learned.
 */
export async function readQuota(endpoint: string, tls: TlsMaterial | undefined): Promise<number> {
  const url = new URL('/metrics', /^https?:/.test(endpoint) ? endpoint : `http://${endpoint}`)
  const text = await (url.protocol === 'https:'
    ? read((done) => https.get(url, { ...tls, agent: false }, done))
    : read((done) => http.get(url, { agent: false }, done)))
  const bytes = Number(QUOTA.exec(text)?.[1])
  if (!(bytes > 0)) throw new Error(`${endpoint}/metrics does not tell the quota`)
  return bytes
}

function read(
  get: (done: (answer: http.IncomingMessage) => void) => http.ClientRequest,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get((answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
        if (text.length > ANSWER_BYTES_MAX) request.destroy(new Error('the metrics are too long'))
      })
      answer.on('error', reject)
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve(text)
        else reject(new Error(`etcd answered ${answer.statusCode} when asked for its metrics`))
      })
    })
    request.setTimeout(TIMEOUT_MS, () => request.destroy(new Error('etcd did not answer in time')))
    request.on('error', reject)
  })
}
