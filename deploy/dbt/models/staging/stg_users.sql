select
  {{ record_id() }} as user_id,
  {{ full_name() }} as user_name,
  isactive as is_active,
  managerid as manager_id
from {{ source('salesforce', 'users') }}
