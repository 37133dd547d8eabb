/** Rows of the dashboard about what clients see: requests, latency, watches. */
import { one, quantile, REQUESTS, type Row, rateBy } from './panel.ts'

const SINGLE = 'resource="events",verb=~"GET|POST|PUT|PATCH|DELETE"'
const MANY = 'resource="events",verb=~"LIST|DELETECOLLECTION"'
const SLI = 'apiserver_request_sli_duration_seconds'

export const OVERVIEW: Row = {
  title: 'Five numbers to look at first',
  panels: [
    {
      title: 'Replicas',
      description: 'Replicas that Prometheus can scrape.',
      unit: 'none',
      isNumber: true,
      queries: one('sum(up{S})', 'up'),
    },
    {
      title: 'Failed requests',
      description:
        'Share of requests for events with a 5xx, excluding watches. Objective: less than 0.1 %.',
      unit: 'percentunit',
      isNumber: true,
      limits: [0.001, 0.01],
      queries: one(
        `(sum(rate(apiserver_request_total{S,${REQUESTS},code=~"5.."}[$__rate_interval])) or vector(0)) / sum(rate(apiserver_request_total{S,${REQUESTS}}[$__rate_interval]))`,
        'failed',
      ),
    },
    {
      title: 'Slow requests',
      description:
        'Share of requests that take longer than 1 s for a single event, or 30 s for a list. Objective: less than 1 %.',
      unit: 'percentunit',
      isNumber: true,
      limits: [0.01, 0.1],
      queries: one(
        `1 - sum(rate(${SLI}_bucket{S,${SINGLE},le=~"1([.]0)?"}[$__rate_interval]) or rate(${SLI}_bucket{S,${MANY},le=~"30([.]0)?"}[$__rate_interval])) / sum(rate(${SLI}_count{S,resource="events",verb=~"GET|POST|PUT|PATCH|DELETE|LIST|DELETECOLLECTION"}[$__rate_interval]))`,
        'slow',
      ),
    },
    {
      title: 'Cache behind etcd',
      description:
        'The longest time since a replica received anything from etcd. Above a few seconds its watchers receive nothing.',
      unit: 's',
      isNumber: true,
      limits: [2, 10],
      queries: one('max(tidings_follower_lag_seconds{S})', 'lag'),
    },
    {
      title: "etcd's quota in use",
      description: 'Write limits are reduced above 50 %; all writes are refused at 80 %.',
      unit: 'percentunit',
      isNumber: true,
      limits: [0.5, 0.8],
      queries: one('max(tidings_etcd_quota_used_ratio{S})', 'in use'),
    },
    {
      title: 'Busiest replica',
      description: 'Event loop utilization. A replica serves requests on one core.',
      unit: 'percentunit',
      isNumber: true,
      limits: [0.7, 0.9],
      queries: one('max(rate(nodejs_eventloop_active_seconds_total{S}[$__rate_interval]))', 'busy'),
    },
  ],
}

export const TRAFFIC: Row = {
  title: 'Traffic and errors',
  panels: [
    {
      title: 'Requests for events by verb',
      description: 'A watch counts when it ends.',
      unit: 'reqps',
      isStacked: true,
      queries: rateBy('verb', 'apiserver_request_total', 'resource="events"'),
    },
    {
      title: 'Responses by code',
      description:
        'All requests, including those for health and metrics. 429: see "Limits and refusals". 5xx: see the runbook, TidingsErrors.',
      unit: 'reqps',
      isStacked: true,
      queries: rateBy('code', 'apiserver_request_total'),
    },
    {
      title: 'Server errors and lost clients',
      description:
        'Requests for events with a 5xx, and requests whose client disconnected before the response. Normally none.',
      unit: 'reqps',
      queries: [
        ...rateBy('verb, code', 'apiserver_request_total', 'resource="events",code=~"5.."'),
        ...one(
          'sum(rate(apiserver_request_aborts_total{S,resource="events"}[$__rate_interval]))',
          'client gone',
        ),
      ],
    },
    {
      title: 'Requests by cluster',
      description: 'Requests for the events of each cluster; "*" is all clusters at once.',
      unit: 'reqps',
      isStacked: true,
      queries: rateBy('cluster', 'tidings_cluster_requests_total'),
    },
    {
      title: 'Event changes',
      description:
        'Events created, updated and deleted, by writer. An unknown outcome means that etcd did not respond.',
      unit: 'wps',
      queries: rateBy('writer, change, outcome', 'tidings_event_changes_total'),
    },
    {
      title: 'Events stored',
      description: 'Live events by cluster; the same on every replica.',
      unit: 'short',
      isStacked: true,
      queries: one('max by (cluster) (tidings_cluster_events{S})', '{{cluster}}'),
    },
    {
      title: 'Who writes most',
      description:
        'Event writes per second of the top controllers, namespaces, reasons and users. Empty while nobody writes once a second. Runbook: TidingsFlood.',
      unit: 'wps',
      // Every replica sees the writes of all; users are those of the replica.
      queries: [
        ...one(
          'topk(10, max by (dimension, value) (tidings_top_source_rate{S,dimension!="user"}))',
          '{{dimension}} {{value}}',
        ),
        ...one(
          'topk(10, sum by (value) (tidings_top_source_rate{S,dimension="user"}))',
          'user {{value}}',
        ),
      ],
    },
    {
      title: 'Response bytes',
      description: 'Bytes of response bodies per second, by verb.',
      unit: 'Bps',
      isStacked: true,
      queries: rateBy('verb', 'apiserver_response_sizes_sum'),
    },
  ],
}

export const LATENCY: Row = {
  title: 'Latency',
  panels: [
    {
      title: 'Single events, 99th percentile',
      description: 'Objective: 1 s. If all verbs are slow, check etcd and the event loop.',
      unit: 's',
      limits: [0.5, 1],
      queries: quantile(0.99, { histogram: SLI, by: 'verb', matchers: SINGLE }),
    },
    {
      title: 'Lists and collection deletes, 99th percentile',
      description: 'Objective: 30 s. Includes the time that a client takes to read a list.',
      unit: 's',
      limits: [10, 30],
      queries: quantile(0.99, { histogram: SLI, by: 'verb', matchers: MANY }),
    },
    {
      title: 'Median by verb',
      description: 'The latency of a typical request.',
      unit: 's',
      queries: quantile(0.5, {
        histogram: 'apiserver_request_duration_seconds',
        by: 'verb',
        matchers: REQUESTS,
      }),
    },
    {
      title: 'Requests in flight and waiting',
      description:
        'Requests that wait for a slot while the CPU is idle: etcd or slow readers hold the slots.',
      unit: 'short',
      queries: [
        ...one(
          'sum by (request_kind) (apiserver_current_inflight_requests{S})',
          '{{request_kind}} in flight',
        ),
        ...one(
          'sum by (request_kind) (apiserver_current_inqueue_requests{S})',
          '{{request_kind}} waiting',
        ),
      ],
    },
    {
      title: 'Wait for a slot, 99th percentile',
      description: 'Only requests that had to wait; those with execute="false" got 429.',
      unit: 's',
      queries: quantile(0.99, {
        histogram: 'apiserver_flowcontrol_request_wait_duration_seconds',
        by: 'execute',
      }),
    },
    {
      title: 'Consistent reads waiting for the cache, 99th percentile',
      description: 'How long reads of the newest state wait until the cache has reached it.',
      unit: 's',
      queries: quantile(0.99, {
        histogram: 'apiserver_watch_cache_read_wait_seconds',
        by: 'resource',
      }),
    },
  ],
}

export const WATCHES: Row = {
  title: 'Watches',
  panels: [
    {
      title: 'Running watches',
      description: 'By replica. Waiting watches have received every change; the others are behind.',
      unit: 'short',
      queries: [
        ...one('sum by (instance) (apiserver_longrunning_requests{S})', '{{instance}} running'),
        ...one('sum by (instance) (tidings_watchers_waiting{S})', '{{instance}} waiting'),
      ],
    },
    {
      title: 'Changes received and delivered',
      description: 'Changes from etcd, and their deliveries to watchers.',
      unit: 'ops',
      queries: [
        ...one(
          'sum(rate(apiserver_watch_cache_events_received_total{S}[$__rate_interval]))',
          'received',
        ),
        ...one(
          'sum(rate(apiserver_watch_cache_events_dispatched_total{S}[$__rate_interval]))',
          'delivered',
        ),
      ],
    },
    {
      title: 'Cache behind etcd',
      description:
        'Time since each replica received anything from etcd, which it asks every second. Runbook: TidingsLags.',
      unit: 's',
      limits: [2, 10],
      queries: one('tidings_follower_lag_seconds{S}'),
    },
    {
      title: 'Watches that lost access',
      description: 'Ended because their user, token or role was removed, or could not be checked.',
      unit: 'ops',
      queries: rateBy('reason', 'tidings_watches_ended_total'),
    },
  ],
}
