import { one, type Row, rateBy } from './panel.ts'

export const LIMITS: Row = {
  title: 'Limits and refusals',
  panels: [
    {
      title: 'Requests refused with 429, by limit',
      description:
        'Slots and watches by level and reason; events and bytes per second by type and unit. Reference: limits.',
      unit: 'reqps',
      isStacked: true,
      queries: [
        ...rateBy('priority_level, reason', 'apiserver_flowcontrol_rejected_requests_total'),
        ...rateBy('type, unit', 'tidings_event_rate_limited_total'),
      ],
    },
    {
      title: 'Who is refused',
      description:
        'The ten users and controllers with most refused requests. Runbook: TidingsRefusesRequests.',
      unit: 'reqps',
      queries: one(
        'topk(10, sum by (user, controller) (rate(tidings_refused_requests_total{S}[$__rate_interval])))',
        '{{user}} {{controller}}',
      ),
    },
    {
      title: 'Writes of events that failed, by reason',
      description:
        'The reason in the response; after a Timeout it is not known whether the write was applied.',
      unit: 'reqps',
      isStacked: true,
      queries: rateBy('verb, reason', 'tidings_event_writes_refused_total'),
    },
    {
      title: 'Failed authentication and connections',
      description:
        'Requests without valid credentials, failed TLS handshakes, connections without a PROXY header.',
      unit: 'reqps',
      queries: [
        ...rateBy('reason', 'tidings_authentication_failures_total'),
        ...one(
          'sum(rate(apiserver_tls_handshake_errors_total{S}[$__rate_interval]))',
          'TLS handshake',
        ),
        ...one(
          'sum by (reason) (rate(tidings_proxy_header_errors_total{S}[$__rate_interval]))',
          'PROXY header {{reason}}',
        ),
      ],
    },
    {
      title: 'Held back and unauthenticated',
      description:
        '429 responses that are held back, connections without an authenticated request, and those that wait unread.',
      unit: 'short',
      queries: [
        ...one('sum(tidings_refusals_waiting{S})', 'refusals waiting'),
        ...one('sum(tidings_unauthenticated_connections{S})', 'unauthenticated'),
        ...one('sum(tidings_authenticated_connections{S})', 'authenticated'),
        ...one('sum(tidings_client_number_limit{S,limit="connections"})', 'limit'),
        ...one('sum(tidings_connections_waiting{S})', 'connections waiting'),
      ],
    },
    {
      title: 'Refused for memory, and unread responses',
      description:
        'Requests refused since a limit on memory held for clients was reached, and responses that nobody read.',
      unit: 'ops',
      queries: [
        ...rateBy('limit', 'tidings_client_memory_refused_total'),
        ...one('sum(rate(tidings_stalled_responses_total{S}[$__rate_interval]))', 'unread'),
      ],
    },
  ],
}
