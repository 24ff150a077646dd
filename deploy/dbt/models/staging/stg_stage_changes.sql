-- Times of changes are seconds, so the order comes from the events: their place in the stream.
with events as (

  {% if on_files() %}
  select
    _record_id as opportunity_id,
    _transaction_key as transaction_key,
    row_number() over (order by _epoch, coalesce(_ordinal, _first_ordinal), line) as place
  from (select *, row_number() over () as line from {{ source('salesforce', 'opportunity_events') }}) as lines
  where _change_type = 'UPDATE' and 'StageName' = any(_changed_fields)
  {% else %}
  select
    _record_id as opportunity_id,
    _transaction_key as transaction_key,
    row_number() over (order by _epoch, _ordinal) as place
  from {{ source('salesforce', 'opportunity_events') }}
  where _change_type = 'UPDATE' and 'stagename' = any(_changed_fields)
  {% endif %}

),

places as (

  select opportunity_id, transaction_key, min(place) as place
  from events
  group by opportunity_id, transaction_key

)

select
  c.opportunity_id,
  c.old_value as old_stage,
  c.new_value as new_stage,
  c.old_is_known,
  c.changed_at,
  c.changed_by_id,
  c.changed_by_name,
  row_number() over (partition by c.opportunity_id order by p.place) as number,
  count(*) over (partition by c.opportunity_id) as changes
from {{ ref('stg_opportunity_changes') }} as c
inner join places as p on p.opportunity_id = c.opportunity_id and p.transaction_key = c.transaction_key
where c.field = 'stagename' and (not c.old_is_known or c.old_value <> c.new_value)
