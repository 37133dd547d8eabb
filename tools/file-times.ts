/** A reporter for Node's test runner that prints how long each test file took, as `milliseconds path`. */
import { relative } from 'node:path'
import process from 'node:process'
import type { TestEvent } from 'node:test/reporters'

// biome-ignore lint/style/noDefaultExport: the test runner loads the default export of a reporter.
export default async function* fileTimes(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const wholeFiles = new Map<string, number>()
  /** Sums of top-level tests: files that share a process have no summary of their own. */
  const sums = new Map<string, number>()
  for await (const { type, data } of events) {
    if (type === 'test:summary' && data.file !== undefined) {
      wholeFiles.set(data.file, data.duration_ms)
    }
    const isTest = type === 'test:pass' || type === 'test:fail'
    if (isTest && data.nesting === 0 && data.file !== undefined) {
      sums.set(data.file, (sums.get(data.file) ?? 0) + data.details.duration_ms)
    }
  }
  for (const [file, ms] of wholeFiles.size > 0 ? wholeFiles : sums) {
    yield `${Math.round(ms)} ${relative(process.cwd(), file)}\n`
  }
}
