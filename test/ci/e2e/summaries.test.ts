/** The commands of docs/reference/summaries.md, with kubectl. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { KubectlSession, OLDEST, RECORDED_WITH, whyNot } from '../../nightly/kubectl/kubectl.ts'

for (const version of [RECORDED_WITH, OLDEST]) {
  describe(`kubectl ${version} and summaries`, { skip: whyNot(version) }, () => {
    let session: KubectlSession
    before(async () => {
      session = await KubectlSession.start(version, '')
      await session.run('kubectl create -f events.yaml')
    })
    after(() => session[Symbol.asyncDispose]())

    const printed = async (command: string): Promise<readonly string[]> => {
      const { output, exitCode } = await session.run(command)
      assert.equal(exitCode, 0, output)
      return output
        .trimEnd()
        .split('\n')
        .map((line) => line.replaceAll(/ {2,}/g, '  ').trim())
    }

    test('the table of a namespace has the grouped fields and the counts', async () => {
      const [head, first = '', second = '', ...more] = await printed(
        'kubectl get eventsummaries -n shop --field-selector groupBy=reason+controller',
      )
      assert.equal(head, 'REASON  CONTROLLER  OCCURRENCES  EVENTS  OBJECTS  FIRST  LAST  NOTE')
      assert.match(
        first,
        /^BackOff {2}example.com\/kubelet {2}17 {2}1 {2}1 {2}\d+d {2}\d+d {2}Back-off/,
      )
      assert.match(second, /^Scheduled {2}example.com\/scheduler {2}1 {2}1 {2}1 {2}/)
      assert.deepEqual(more, [])
    })

    test('kubectl prints the namespace of a group', async () => {
      const [head, row = ''] = await printed(
        'kubectl get evsum -A --field-selector groupBy=namespace,type=Warning',
      )
      assert.match(head ?? '', /^NAMESPACE {2}OCCURRENCES {2}EVENTS/)
      assert.match(row, /^shop {2}17 {2}1 {2}1 {2}\d+\/min/)
    })

    test('without options it shows incidents', async () => {
      const [head, first = ''] = await printed('kubectl get eventsummaries -A')
      assert.match(head ?? '', /^NAMESPACE {2}TYPE {2}WORKLOAD {2}REASON {2}PATTERN {2}OCCURRENCES/)
      assert.match(first, /^shop {2}Warning {2}\w+\/\S+ {2}BackOff {2}[0-9a-f]{8} {2}17 /)
    })

    test('by rate it shows who writes the most', async () => {
      const rows = await printed(
        'kubectl get eventsummaries -A --field-selector groupBy=controller,order=rate',
      )
      assert.match(rows[0] ?? '', /^NAMESPACE {2}CONTROLLER {2}OCCURRENCES/)
      assert.equal(rows.length, 3)
      for (const row of rows.slice(1)) assert.match(row, /^example.com\/\w+ .* {2}[1-9]\d*\/min/)
      const users = await printed('kubectl get evsum -A --field-selector groupBy=user')
      assert.match(users[1] ?? '', /^admin {2}.*[1-9]\d*\/min$/)
    })

    test('a histogram has its buckets', async () => {
      const since = '2026-01-02T03:00:00Z,until=2026-01-02T03:10:00Z'
      const rows = await printed(
        `kubectl get eventhistograms -n shop --field-selector since=${since},buckets=2,by=reason`,
      )
      assert.deepEqual(rows, [
        'START  END  TOTAL  COUNTS',
        '2026-01-02T03:00:00Z  2026-01-02T03:05:00Z  1  Scheduled=1',
        '2026-01-02T03:05:00Z  2026-01-02T03:10:00Z  17  BackOff=~17',
      ])
      assert.equal((await printed('kubectl get evhist -A --no-headers')).length, 60)
    })

    test('objects, explanations and mistakes are readable', async () => {
      const json = await session.run('kubectl get evsum -n shop -o json')
      const { items } = JSON.parse(json.output)
      assert.equal(items[0].apiVersion, 'tidings.dev/v1alpha1')
      assert.equal(items[0].kind, 'EventSummary')
      assert.match((await printed('kubectl explain eventsummary.occurrences')).join('\n'), /window/)
      const explained = (await printed('kubectl explain eventsummary')).join('\n')
      for (const name of ['before', 'estimated', 'workloadRule']) {
        assert.match(explained, new RegExp(`^${name}\\s+<\\w+>\\s`, 'm'))
      }
      assert.match((await printed('kubectl explain evsum.workloadRule')).join('\n'), /owner, event/)
      const mistaken = await session.run('kubectl get evsum -A --field-selector groupBy=colour')
      assert.match(
        mistaken.output,
        /groupBy: unknown field "colour": write one or more of cluster,/,
      )
      const named = await session.run('kubectl get evsum -n shop x')
      assert.match(named.output, /eventsummaries are computed for each list/)
      const refused = await session.run('kubectl --context nobody get evsum -A')
      assert.match(refused.output, /eventsummaries.tidings.dev is forbidden/)
    })
  })
}
